/** Real calls of a running process, paused and resumed from a shell by what people know of a receiver: its origin. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'
import { emptyFolder, runCli, startCli } from './support.ts'

beforeAll(buildPackage)

/** `aftercommit start` with one observer for each of these addresses, and a shell beside it. */
async function running(addresses: Readonly<Record<string, string>>) {
  const { url } = await testDatabase({ migrated: true })
  const cwd = emptyFolder()
  const observers = Object.entries(addresses).map(
    ([name, address]) =>
      `[observers.${name}]\non = "lamp.lit"\nactions = [{ type = "webhook", name = "call", url = "${address}" }]\n`,
  )
  writeFileSync(join(cwd, 'aftercommit.toml'), `[network]\nallow = ["127.0.0.1"]\n${observers.join('\n')}`)
  const env = { DATABASE_URL: url }
  const process = startCli(['start'], { cwd, env })
  await process.waitForLine('Ready:')
  const ac = instance({ database: url })
  return {
    ac,
    process,
    sql: await connect(url),
    emit: (id: string) => ac.transaction((tx) => tx.emit('lamp.lit', { id, payload: {} })),
    cli: (...args: string[]) => runCli(args, { env }),
  }
}

it('a healthy origin is paused before anything went wrong there, and the calls end', async () => {
  const [erp, crm] = [await httpReceiver(), await httpReceiver()]
  const { cli, emit, ac } = await running({ erp: `${erp.url}/orders`, crm: crm.url })
  await emit('a')
  await eventually(() => erp.calls.length === 1 && crm.calls.length === 1)

  expect(await cli('deliveries', 'pause', '--destination', erp.url, '--reason', 'maintenance')).toMatchObject({
    code: 0,
    stdout: `Paused webhook ${erp.url}: 0 wait until it is resumed.\n`,
  })
  for (const id of ['b', 'c']) await emit(id)
  await eventually(() => crm.calls.length === 3)
  await eventually(async () => (await ac.deliveries.count({ destination: erp.url })).paused === 2)
  expect(erp.calls).toHaveLength(1)

  expect(await cli('deliveries', 'resume', '--destination', erp.url)).toMatchObject({
    code: 0,
    stdout: `Resumed webhook ${erp.url}.\n`,
  })
  await eventually(() => erp.calls.length === 3)
})

it('a destination that nobody knows is refused as a mistake, with the nearest, and nothing is written', async () => {
  const erp = await httpReceiver()
  const { cli, sql } = await running({ erp: erp.url })
  const before = await sql.query('select destination from aftercommit.destinations order by 1')
  for (const verb of ['pause', 'resume']) {
    expect(await cli('deliveries', verb, '--destination', `${erp.url}1`)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`Did you mean "${erp.url}"?`),
    })
  }
  const refused = await cli('deliveries', 'pause', '--destination', 'https://nowhere.example', '--json')
  expect(refused.code).toBe(2)
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'UNKNOWN_DESTINATION' } })
  expect((await sql.query('select destination from aftercommit.destinations order by 1')).rows).toEqual(before.rows)
  expect((await sql.query('select from aftercommit.audit')).rowCount).toBe(0)
})

it('a receiver that is gone for good pauses the action that asked it, says so everywhere, and is resumed by a person', async () => {
  let isGone = true
  const erp = await httpReceiver((response, { path }) => {
    response.writeHead(isGone && path === '/old' ? 410 : 200).end()
  })
  const { cli, emit, ac, process, sql } = await running({ old: `${erp.url}/old`, new: `${erp.url}/new` })
  const callsTo = (path: string) => erp.calls.filter((call) => call.path === path).length
  await emit('a')
  await process.waitForLine('gone for good')
  // The one that was told so is a dead letter; what follows is kept, and the other action at the same origin goes on.
  await eventually(async () => (await ac.deadLetters.list({ kind: 'action', owner: 'old/call' })).length === 1)
  await eventually(async () => {
    const { rows } = await sql.query(
      'select version > 0 and not exists (select from aftercommit.delivery_workers where seen < version) as obeyed from aftercommit.delivery_state',
    )
    return rows[0].obeyed
  })
  for (const id of ['b', 'c', 'd']) await emit(id)
  await eventually(() => callsTo('/new') === 4)
  await eventually(async () => (await ac.deliveries.count({ name: 'old/call' })).paused === 3)
  expect(callsTo('/old')).toBe(1)
  // A call is over a moment after it was received.
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 3)

  const { stdout } = await cli('status')
  expect(stdout).toMatch(/^Deliveries +3 paused$/m)
  expect(stdout).toMatch(
    /Paused deliveries\n.*\n +action +old\/call .* aftercommit +its destination said that it is gone/,
  )
  expect(stdout).not.toContain('Destinations held back')
  const { findings } = JSON.parse((await cli('doctor', '--json')).stdout)
  expect(findings).toContainEqual({
    level: 'warning',
    check: 'pauses',
    message: expect.stringMatching(
      /^The action "old\/call" has been paused for .*its destination said that it is gone/,
    ),
    fix: expect.stringContaining('aftercommit deliveries resume old/call --kind action'),
  })
  expect((await sql.query('select who, what, target from aftercommit.audit')).rows).toEqual([
    { who: 'aftercommit', what: 'delivery.pause', target: 'action old/call' },
  ])

  isGone = false
  expect(await cli('deliveries', 'resume', 'old/call')).toMatchObject({ code: 0, stdout: 'Resumed action old/call.\n' })
  await eventually(() => callsTo('/old') === 4)
  expect(await cli('dlq', 'redrive', '--all-matching', '--owner', 'old/call', '--yes')).toMatchObject({ code: 0 })
  await eventually(() => callsTo('/old') === 5)
})
