import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

it('conditions work where code must not be made from text', () => {
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    'fast',
    '--reporter',
    'json',
    'test/conditions/',
  ]
  const { stdout, status } = spawnSync(process.execPath, vitest, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '--disallow-code-generation-from-strings' },
  })
  const report = JSON.parse(stdout.slice(stdout.indexOf('{')))
  const passed = report.testResults.flatMap((file: { assertionResults: { title: string; status: string }[] }) =>
    file.assertionResults.filter((result) => result.status === 'passed').map((result) => result.title),
  )
  expect(passed).toContain('this process refuses to make code from text')
  expect(report.numFailedTests).toBe(0)
  expect(status).toBe(0)
})
