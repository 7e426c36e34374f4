import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

it('all tests of observers pass where no text can become code', () => {
  const config = 'test/observers/executor-code-generation.config.mjs'
  const command = ['node_modules/vitest/vitest.mjs', 'run', '--root', root, '--config', config, '--reporter', 'json']
  const { stdout, status } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' })
  const report = JSON.parse(stdout.slice(stdout.indexOf('{')))
  const results: { title: string; status: string }[] = report.testResults.flatMap(
    (file: { assertionResults: unknown[] }) => file.assertionResults,
  )
  const titles = (status: string) => results.filter((one) => one.status === status).map(({ title }) => title)
  expect(titles('failed')).toEqual([])
  expect(titles('passed')).toEqual(
    expect.arrayContaining([
      'observers are tested in a process where no text becomes code',
      'a question about changes does not hide what stands beside it',
      'rejects with every mistake of the configuration, in TOML with its place',
    ]),
  )
  expect(status).toBe(0)
})
