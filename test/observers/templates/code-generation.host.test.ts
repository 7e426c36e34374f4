import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))

it('all tests of templates pass where no text can become code', () => {
  const command = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'fast', '--reporter', 'verbose', '--no-color']
  const { stdout, status } = spawnSync(process.execPath, [...command, 'test/observers/templates/'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '--disallow-code-generation-from-strings' },
  })
  expect(stdout).toMatch(/✓.*no text becomes code in this process/)
  expect(stdout).toMatch(/✓.*a template cannot get out/)
  expect(status).toBe(0)
})
