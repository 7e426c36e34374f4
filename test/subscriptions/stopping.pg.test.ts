/** What a process is after `stop()`: nothing of ours keeps it alive. */
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { testDatabase } from '../support/database.ts'
import { spawnScript } from '../support/processes.ts'

beforeAll(buildPackage)

test('a process whose handlers timed out and never end has no timer and no connection left after stop, and exits', async () => {
  const { url } = await testDatabase({ migrated: true })
  const child = spawnScript(fileURLToPath(new URL('./support/hanging.mjs', import.meta.url)), [url])
  expect(await child.waitForLine('left:')).toBe('left: ')
  expect(await child.exited).toEqual({ code: 0, signal: null })
})
