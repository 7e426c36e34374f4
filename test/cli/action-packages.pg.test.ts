import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { testDatabase } from '../support/database.ts'
import { runCli, startCli } from './support.ts'

beforeAll(buildPackage)

const cwd = fileURLToPath(new URL('../../examples/05-own-action', import.meta.url))

it('commands know the action types of packages that the file names', async () => {
  for (const command of ['observers validate', 'config check']) {
    const { code, stdout, stderr } = await runCli(command.split(' '), { cwd })
    expect(stdout + stderr).toContain('no mistakes')
    expect(code).toBe(0)
  }
  const { stdout } = await runCli(['config', 'schema'], { cwd })
  const { observers } = JSON.parse(stdout).properties
  const bell = observers.additionalProperties.properties.actions.items.oneOf.find(
    (one: { title: string }) => one.title === 'bell',
  )
  expect(bell).toMatchObject({ description: 'Rings a bell that speaks HTTP.', required: ['type', 'url', 'text'] })
})

it('a service runs rules that use them, and history can be tried on them', async () => {
  const { url } = await testDatabase({ migrated: true })
  const env = { DATABASE_URL: url }
  const service = startCli(['start', '--json'], { cwd, env })
  await service.waitForLine('"ready":true')
  service.kill('SIGTERM')
  expect(await service.exited).toMatchObject({ code: 0 })
  const emitted = ['events', 'emit', 'visitor.arrived', '--payload', '{"name":"Ada"}']
  expect(await runCli(emitted, { cwd, env })).toMatchObject({ code: 0 })
  const { stdout } = await runCli(['observers', 'test', '--since', '1h', '--json'], { cwd, env })
  expect(stdout).toContain('Ada is at the door')
})
