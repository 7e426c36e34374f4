import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../cli/support.ts'
import { gate, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { httpReceiver } from '../support/receivers.ts'

const log = { on: 'lamp.lit', actions: [{ type: 'log' }] }
const backlogIn = (text: string) => Number(/^aftercommit_backlog (\d+)$/m.exec(text)?.[1])

test('a backlog above its threshold is a gauge and one alert, and nothing of it is lost', async () => {
  const receiver = await httpReceiver()
  const file = join(emptyFolder(), 'aftercommit.toml')
  writeFileSync(
    file,
    `[runtime]
     backlog_alert_threshold = 3
     [failure_alerts]
     slack = "#ops"
     [providers.slack]
     webhook_url = "${receiver.url}/hook"
     [observers.all]
     on = "lamp.lit"
     actions = [{ type = "log" }]`,
  )
  const { ac, another, sql, emitMany } = await openSubscriptions()
  // An observer named `observers` had an alert a moment ago, which must not hold this one back.
  await sql.query(`insert into aftercommit.observer_alerts (observer, sent_at, count)
                   values ('observers', clock_timestamp(), 0)`)
  await ac.observers.loadFile(file)
  await ac.start()
  await eventually(async () => (await ac.subscriptions.list()).some(({ id, owner }) => id === 'observers' && owner))
  await ac.subscriptions.get('observers').pause()
  await emitMany(5)
  const late = another()
  await late.observers.loadFile(file)
  await late.start()
  await eventually(() => receiver.calls.length === 1)
  expect(receiver.calls[0]!.body).toContain('5 events are not finished by observers, more than 3')
  expect(backlogIn(await late.metrics())).toBe(5)
  expect(late.health()).toMatchObject({ live: true })

  await ac.subscriptions.get('observers').resume()
  await eventually(async () => backlogIn(await ac.metrics()) === 0)
  const status = await eventually(async () => {
    const [all] = await ac.observers.status()
    return all!.runs.success === 5 && all
  })
  expect(status).toMatchObject({ name: 'all', source: 'file', isInForce: true })
  expect(receiver.calls).toHaveLength(1)
})

test('actions that wait behind a dead receiver, and handlers that are under way, are a backlog, each event once', async () => {
  const receiver = await httpReceiver((response) => response.writeHead(503).end())
  const file = join(emptyFolder(), 'aftercommit.toml')
  writeFileSync(
    file,
    `[runtime]
     backlog_alert_threshold = 40
     [network]
     allow = ["127.0.0.1"]
     [observers.erp]
     on = "lamp.lit"
     actions = [
       { type = "webhook", name = "one", url = "${receiver.url}/one" },
       { type = "webhook", name = "two", url = "${receiver.url}/two" },
       { type = "custom", name = "slow", handler = "slow" },
     ]`,
  )
  const { logger, lines } = collectingLogger()
  const { ac, sql, emitMany } = await openSubscriptions({ logger })
  const release = gate()
  ac.observers.action('slow', () => release.passed)
  await ac.observers.loadFile(file)
  await ac.start()
  await emitMany(50)
  // Nothing is unread any more: each event has passed the checkpoint and left rows.
  await eventually(async () => (await ac.subscriptions.get('observers').status()).position >= 50n)
  await eventually(async () => (await sql.query(`select from aftercommit.deliveries`)).rowCount === 150)
  await eventually(async () => backlogIn(await ac.metrics()) === 50)
  await eventually(() => lines.some((line) => line === 'warn backlog of observers'))
  release.open()
})

test('days of run records that are over are dropped, and days to come are there', async () => {
  const { ac, sql } = await openSubscriptions()
  await sql.query(`create table aftercommit.runs_20200101 partition of aftercommit.runs
                     for values from ('2020-01-01 00:00:00+00') to ('2020-01-02 00:00:00+00')`)
  const { rows: made } = await sql.query(
    `select 'runs_' || to_char(now() at time zone 'UTC' + interval '3 days', 'YYYYMMDD') as name`,
  )
  await sql.query(`drop table if exists aftercommit.${made[0].name}`)
  await ac.observers.add({ name: 'all', ...log })
  await ac.start()
  const days = async () => {
    const { rows } = await sql.query(
      `select inhrelid::regclass::text as day from pg_inherits where inhparent = 'aftercommit.runs'::regclass`,
    )
    return rows.map(({ day }) => day)
  }
  await eventually(async () => !(await days()).includes('aftercommit.runs_20200101'))
  await eventually(async () => (await days()).includes(`aftercommit.${made[0].name}`))
})
