import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'
import { emptyFolder, runCli, startCli } from './support.ts'

beforeAll(buildPackage)

const webhook = (url: string, path: string, more = '') => `
[network]
allow = ["127.0.0.1"]
[observers.call]
on = "lamp.lit"
${more}
actions = [{ type = "webhook", url = "${url}/${path}" }]
`

async function opened(rules: string) {
  const { url } = await testDatabase({ migrated: true })
  const cwd = emptyFolder()
  // As a whole: whoever watches the file must not find half of it.
  const write = (text: string) => {
    writeFileSync(join(cwd, 'next.toml'), text)
    renameSync(join(cwd, 'next.toml'), join(cwd, 'aftercommit.toml'))
  }
  write(rules)
  const ac = instance({ database: url })
  const env = { DATABASE_URL: url }
  return {
    url,
    cwd,
    env,
    write,
    emit: (id: string) => ac.transaction((tx) => tx.emit('lamp.lit', { id, payload: {} })),
    async start(...args: string[]) {
      const running = startCli(['start', ...args], { cwd, env })
      await running.waitForLine('Ready:')
      return running
    },
  }
}

it('runs the file, reads it again on SIGHUP, keeps the old one when it has mistakes, and ends in order', async () => {
  const receiver = await httpReceiver()
  const { start, emit, write } = await opened(webhook(receiver.url, 'one'))
  const running = await start()
  expect(running.lines.join('\n')).toContain('Ready: 1 observer of aftercommit.toml')
  await emit('a')
  await eventually(() => receiver.calls.length === 1)

  write(webhook(receiver.url, 'two', 'condtion = "true"'))
  running.kill('SIGHUP')
  await running.waitForLine('Did you mean "condition"?')
  await emit('b')
  await eventually(() => receiver.calls.length === 2)

  write(`${webhook(receiver.url, 'two')}[runtime]\nmax_concurrency = 7\n`)
  running.kill('SIGHUP')
  await running.waitForLine('configuration reloaded')
  await running.waitForLine('runtime.max_concurrency')
  await emit('c')
  await eventually(() => receiver.calls.length === 3)
  expect(receiver.calls.map(({ path }) => path)).toEqual(['/one', '/one', '/two'])

  running.kill('SIGTERM')
  expect(await running.exited).toEqual({ code: 0, signal: null })
})

it('shows every mistake of the file at once, those of settings and those of rules', async () => {
  const cwd = emptyFolder()
  writeFileSync(
    join(cwd, 'aftercommit.toml'),
    `[log]
retension = "7d"
[observers.one]
no = "lamp.lit"
actions = [{ type = "log" }]
[observers.two]
on = "lamp.lit"
condition = "watts >"
actions = [{ type = "log" }]
`,
  )
  const { code, stderr } = await runCli(['start'], { cwd, env: { DATABASE_URL: 'postgres://localhost:1/none' } })
  expect(code).toBe(3)
  for (const part of ['retension', 'observers.one', 'observers.two.condition']) expect(stderr).toContain(part)
})

it('starts with --database where the file refers to a variable that is not set', async () => {
  const { url, write, env, cwd } = await opened('')
  write(`database = "\${env:NOT_SET}"\n[observers.one]\non = "lamp.lit"\nactions = [{ type = "log" }]\n`)
  const running = startCli(['start', '--database', url], { cwd, env: { ...env, DATABASE_URL: '' } })
  await running.waitForLine('Ready:')
  running.kill('SIGTERM')
  expect(await running.exited).toEqual({ code: 0, signal: null })
})

it('reads the file again by itself with --watch', async () => {
  const receiver = await httpReceiver()
  const { start, emit, write } = await opened(webhook(receiver.url, 'one'))
  const running = await start('--watch')
  write(webhook(receiver.url, 'two'))
  await running.waitForLine('configuration reloaded')
  await emit('a')
  await eventually(() => receiver.calls.length === 1)
  expect(receiver.calls[0]!.path).toBe('/two')
})

it('gives back the claim of an action that hangs past the limit, and says so with its exit code', async () => {
  const receiver = await httpReceiver((response, _, number) => {
    if (number === 1) response.writeHead(500).end()
  })
  const rules = webhook(receiver.url, 'hang', 'retry = { schedule = ["10ms"], max_attempts = 5 }')
  const { start, emit, url } = await opened(`${rules}[runtime]\nshutdown_timeout = "200ms"\n`)
  const running = await start()
  await emit('a')
  // The first attempt fails at once, the second one hangs.
  await eventually(() => receiver.calls.length === 2)
  running.kill('SIGTERM')
  expect(await running.exited).toEqual({ code: 1, signal: null })
  const sql = await connect(url)
  const { rows } = await sql.query(
    'select token, attempts, run_at <= clock_timestamp() as due from aftercommit.deliveries',
  )
  expect(rows).toEqual([{ token: null, attempts: 2, due: true }])
})

it('ends at once when it is told twice', async () => {
  const receiver = await httpReceiver((response, _, number) => {
    if (number === 1) response.writeHead(500).end()
  })
  const { start, emit } = await opened(webhook(receiver.url, 'hang', 'retry = { schedule = ["10ms"] }'))
  const running = await start()
  await emit('a')
  await eventually(() => receiver.calls.length === 2)
  running.kill('SIGTERM')
  await running.waitForLine('stopping')
  running.kill('SIGTERM')
  expect(await running.exited).toEqual({ code: 130, signal: null })
})

it('refuses a file that names code of the user, unless a module brings it', async () => {
  const rules = `[observers.mine]\non = "lamp.lit"\nactions = [{ type = "custom", handler = "ring" }]\n`
  const { cwd, env, start, emit } = await opened(rules)
  const refused = await runCli(['start'], { cwd, env })
  expect(refused).toMatchObject({ code: 3, stdout: '' })
  expect(refused.stderr).toContain('ac.observers.action("ring", …)')
  expect(refused.stderr).toContain('--import')

  writeFileSync(
    join(cwd, 'handlers.mjs'),
    `export default (ac) => ac.observers.action('ring', (event) => console.log('rang for ' + event.id))`,
  )
  const running = await start('--import', 'handlers.mjs')
  await emit('a')
  await running.waitForLine('rang for a')

  writeFileSync(join(cwd, 'nothing.mjs'), 'export const ring = 1')
  expect(await runCli(['start', '--import', 'nothing.mjs'], { cwd, env })).toMatchObject({ code: 2 })
})

it('runs action types that only a module brings, and still refuses a mistake in a rule', async () => {
  const rules = (type: string) => `[observers.mine]\non = "lamp.lit"\nactions = [{ type = "${type}" }]\n`
  const { cwd, env, start, emit } = await opened(rules('bell'))
  expect(await runCli(['start'], { cwd, env })).toMatchObject({ code: 3, stderr: expect.stringContaining('"bell"') })
  writeFileSync(
    join(cwd, 'bell.mjs'),
    `import { z } from '${import.meta.resolve('zod')}'
     export default (ac) => ac.observers.actionType({
       type: 'bell',
       describe: 'Rings a bell.',
       schema: z.strictObject({}),
       defaultRetry: 'service',
       prepare: () => ({
         destination: 'bell',
         singleAttempt: false,
         async run({ event }) {
           console.log('rang for ' + event.id)
           return { actionType: 'bell', success: true, message: 'rung', durationMs: 0 }
         },
         preview: () => ({ actionType: 'bell', destination: 'bell', content: {} }),
       }),
     })`,
  )
  const running = await start('--import', 'bell.mjs')
  await emit('a')
  await running.waitForLine('rang for a')
  running.kill('SIGTERM')
  await running.exited

  writeFileSync(join(cwd, 'aftercommit.toml'), rules('bull'))
  const refused = await runCli(['start', '--import', 'bell.mjs'], { cwd, env })
  expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('"bull"') })
})

it('does not start without a file, nor with mistakes in it', async () => {
  const { env, cwd } = await opened('[observers.x]\non = "lamp.lit"\n')
  expect(await runCli(['start'], { env })).toMatchObject({ code: 3, stderr: expect.stringContaining('--config') })
  const wrong = await runCli(['start'], { cwd, env })
  expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('observers.x.actions') })
})

it.each([
  ['finishes a first attempt that is slow', true, 0],
  ['leaves a first attempt that hangs to the next process', false, 1],
])('%s', async (_, isAnswered, code) => {
  const answers: (() => void)[] = []
  const receiver = await httpReceiver((response) => void answers.push(() => response.end('ok')))
  const rules = webhook(receiver.url, 'slow')
  const { start, emit, url } = await opened(`${rules}[runtime]\nshutdown_timeout = "${isAnswered ? '60s' : '200ms'}"\n`)
  const running = await start()
  await emit('a')
  const sql = await connect(url)
  await eventually(() => answers.length === 1)
  running.kill('SIGTERM')
  await running.waitForLine('stopping')
  if (isAnswered) for (const answer of answers) answer()
  expect(await running.exited).toEqual({ code, signal: null })
  const { rows } = await sql.query(
    `select position >= (select max(position) from aftercommit.events) as passed
       from aftercommit.subscription_partitions where id = 'observers'`,
  )
  expect(rows).toEqual([{ passed: isAnswered }])
  expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
  expect(receiver.calls).toHaveLength(1)
})
