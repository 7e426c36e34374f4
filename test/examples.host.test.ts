import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

/** The numbered examples as a reader would run them: against the built package, in a process of their own. */
const root = fileURLToPath(new URL('../', import.meta.url))

beforeAll(() => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
})

describe('01-first-event', () => {
  it('reacts to its order, ends by itself, and does not react to the first order again on the second run', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-example-'))
    const first = linesOf(runExample('01-first-event', dataDir))
    const second = linesOf(runExample('01-first-event', dataDir))
    expect(first).toEqual([expect.stringMatching(/^\d+: receipt for order [0-9a-f-]{36} over 90$/)])
    expect(second).toEqual([expect.stringMatching(/^\d+: receipt for order [0-9a-f-]{36} over 90$/)])
    expect(second).not.toEqual(first)
    rmSync(dataDir, { recursive: true, force: true })
  })
})

function runExample(name: string, dataDir: string): string {
  const { DATABASE_URL: _, ...inherited } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['index.mjs'], {
    cwd: `${root}examples/${name}`,
    env: { ...inherited, NODE_ENV: 'development', AFTERCOMMIT_DATA_DIR: dataDir },
    encoding: 'utf8',
    timeout: 120_000,
  })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line !== '')
}
