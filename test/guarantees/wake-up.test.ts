/**
 * A sleeping reader is woken by every commit, and nobody rings under load. Where the bell cannot be heard the fallback
 * poll finds the event, so nothing here ever decides whether an event arrives, only when.
 */
import { randomInt } from 'node:crypto'
import { type AddressInfo, createServer, connect as dial } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findLogObjects, observe, readRows } from '../../src/log/frontier-statements.ts'
import { removeIdleMark, writeIdleMark } from '../../src/log/wake-statements.ts'
import { hurriedClock, impatientClock, pausableClock } from '../log/support/hurried-clock.ts'
import { openFollowing } from '../log/support/open-following.ts'
import { follow, instance, openLog, SERVERS } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { connect, openTestDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { addressOf, createProxy } from '../support/proxy.ts'

const EMIT = `select aftercommit.emit('lamp.lit', null, null, '{}') as position`
const ISOLATION = ['read committed', 'read committed', 'repeatable read', 'serializable']

/** `npm run chaos` asks for more. */
const HUNT_ROUNDS = Number(process.env.AFTERCOMMIT_HUNT_ROUNDS ?? 500)

describe.each(SERVERS)('the bell of Postgres $major', { timeout: HUNT_ROUNDS * 360 }, ({ major }) => {
  it(`is never lost: ${HUNT_ROUNDS} times a reader falls asleep around one commit, then silence`, async () => {
    const lanes = await Promise.all(Array.from({ length: 5 }, () => fallAsleepAroundCommits(major, HUNT_ROUNDS / 5)))
    expect(lanes.map(({ lost }) => lost)).toEqual([0, 0, 0, 0, 0])
    // Otherwise the rounds have not met the moment they are about.
    const asleep = lanes.reduce((sum, lane) => sum + lane.asleep, 0)
    expect(asleep).toBeGreaterThan(10)
    expect(asleep).toBeLessThan(HUNT_ROUNDS - 10)
  })

  it('would be lost by a reader that falls asleep without waiting for those who append', async () => {
    const { db, url } = await openTestDatabase({ major, migrated: true })
    const objects = await findLogObjects(db)
    const [writer, reader] = await Promise.all([connect(url), connect(url)])
    const heard = await listen(reader)

    await writer.query('begin')
    await writer.query(EMIT) // looks for marks and finds none
    await writeIdleMark(db, 'reader')
    const { holders } = await observe(db, objects)
    expect(await readRows(db, 0n, 10)).toEqual([]) // a hasty reader would sleep now
    await writer.query('commit')
    expect(await heard()).toBe(0)

    // The patient one has seen whom to wait for, and reads once more when that one is gone.
    expect(holders).toHaveLength(1)
    const left = await observe(db, objects)
    expect(left.holders).not.toContain(holders[0])
    expect(await readRows(db, 0n, 10)).toHaveLength(1)
  })

  it('is rung by a writer whose snapshot is older than the mark', async () => {
    const { db, url } = await openTestDatabase({ major, migrated: true })
    const [writer, reader] = await Promise.all([connect(url), connect(url)])
    const heard = await listen(reader)
    for (const isolation of ['repeatable read', 'serializable']) {
      const before = await heard()
      await removeIdleMark(db, 'reader')
      await writer.query(`begin isolation level ${isolation}`)
      await writer.query('select from aftercommit.events')
      await writeIdleMark(db, 'reader')
      await writer.query(EMIT)
      await writer.query('commit')
      expect(await heard()).toBe(before + 1)
    }
  })

  it('is not rung when nobody sleeps, when the mark has run out, or when it was asked not to', async () => {
    const { db, url } = await openTestDatabase({ major, migrated: true })
    const [writer, reader] = await Promise.all([connect(url), connect(url)])
    const heard = await listen(reader)

    await writer.query(EMIT)
    expect(await heard()).toBe(0)

    await writeIdleMark(db, 'reader')
    await writer.query(`begin; set local aftercommit.bell = 'off'; ${EMIT}; commit`)
    expect(await heard()).toBe(0)
    await writer.query(EMIT)
    expect(await heard()).toBe(1)

    await writer.query(`update aftercommit.idle_marks set idle_until = clock_timestamp()`)
    await writer.query(EMIT)
    expect(await heard()).toBe(1)
  })

  it('asked not to ring, leaves the event to the fallback poll', async () => {
    const { url } = await testDatabase({ major, migrated: true })
    const reader = await openFollowing({ database: url })
    await reader.armed()
    const [writer, ear] = await Promise.all([connect(url), connect(url)])
    const heard = await listen(ear)
    const emitSilently = async () => {
      await writer.query('begin')
      await writer.query(`set local aftercommit.bell = 'off'`)
      const position = await emit(writer)
      await writer.query('commit')
      return position
    }
    // Not always the first: one may fall into the read with which the reader goes to sleep.
    await eventually(async () => {
      await reader.reaches(await emitSilently())
      return reader.tailer.status().foundByFallback
    })
    expect(await heard()).toBe(0)
  })

  it('is heard again after the LISTEN session was ended', async () => {
    const { url } = await testDatabase({ major, migrated: true })
    const clock = impatientClock(20)
    const reader = await openFollowing({ database: url, clock })
    await reader.armed()
    const writer = await connect(url)
    const listening = await listenSessions(writer)
    expect(listening).toHaveLength(1)

    await writer.query('select pg_terminate_backend($1)', [listening[0]])
    await reader.reaches(await emit(writer))
    await eventually(async () => {
      const [pid] = await listenSessions(writer)
      return pid !== undefined && pid !== listening[0] && reader.bell().mode === 'listening'
    })
    expect(await reader.isRung(() => emit(writer))).toBe(true)
  })

  it('is silent under load, and rung again afterwards', async () => {
    const { url } = await testDatabase({ major, migrated: true })
    // Under load no time passes, so that a log stays busy however slow the machine is.
    const clock = pausableClock()
    const reader = await openFollowing({ database: url, clock })
    const [watcher, ear] = await Promise.all([connect(url), connect(url)])
    await reader.armed()
    const heard = await listen(ear)
    clock.pause()
    const load = await startLoad(url, 4)

    await eventually(async () => (await watcher.query('select from aftercommit.idle_marks')).rowCount === 0)
    await load.roundOfAll() // whoever saw the mark has committed
    const whenDisarmed = await heard()
    await load.more(500)
    expect(await heard()).toBe(whenDisarmed)
    expect(reader.tailer.status().state).toBe('polling')
    await load.stop()
    clock.goOn()

    await reader.armed()
    const whenQuiet = await heard()
    await reader.reaches(await emit(watcher))
    expect(await heard()).toBe(whenQuiet + 1)
  })

  it('is not needed: with wake = poll nobody listens, nobody rings, and events arrive', async () => {
    const { url, sql } = await openLog({ major, log: { wake: 'poll' } })
    const nowhere = { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' }
    const reader = follow(instance({ database: url, directDatabase: nowhere }).log)
    const heard = await listen(await connect(url))
    for (let n = 0; n < 20; n++) {
      await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}', id => 'lamp-${n}')`)
      if (n % 5 === 0) await reader.sees(`lamp-${n}`)
    }
    // One that cannot see who sleeps would ring to be sure.
    await sql.query(`begin isolation level serializable; ${EMIT}; commit`)
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}', id => 'last')`)
    await reader.sees('last')
    expect(reader.positions).toHaveLength(22)
    expect(await heard()).toBe(0)
    expect((await sql.query('select from aftercommit.idle_marks')).rowCount).toBe(0)
  })

  it('is turned off while processes run, and on again', async () => {
    const { ac, sql, url } = await openLog({ major })
    const reader = await openFollowing({ database: url, clock: hurriedClock(10) })
    await reader.armed()
    await instance({ database: url, log: { wake: 'poll' } }).migrate()
    await eventually(() => reader.tailer.status().state === 'polling')
    await reader.reaches(await emit(sql))
    expect(await ac.log.status()).toMatchObject({ wake: 'poll' })
    await instance({ database: url, log: { wake: 'doorbell' } }).migrate()
    await reader.armed()
  })
})

it('events arrive while the LISTEN connection is a black hole, and the bell is heard again after it', async () => {
  const { url } = await testDatabase({ migrated: true })
  const proxy = await createProxy(url)
  const reader = await openFollowing({ database: url, directDatabase: proxy.url, clock: hurriedClock(10) })
  await reader.armed()
  const writer = await connect(url)

  proxy.blackhole()
  await reader.reaches(await emit(writer))
  await eventually(() => reader.bell().mode !== 'listening')
  await reader.reaches(await emit(writer))

  proxy.pass()
  proxy.dropAll()
  await eventually(() => reader.bell().mode === 'listening', { deadline: 60_000 })
  expect(await reader.isRung(() => emit(writer))).toBe(true)
})

it('a notification queue that is filling up, or full, fails no append: readers poll, and say why', async () => {
  const server = await ownServer({ major: 18, settings: { max_notify_queue_pages: '64' } })
  await instance({ database: server.url }).migrate()
  const reader = await openFollowing({ database: server.url, clock: hurriedClock(10) })
  await reader.armed()
  const [writer, sleeper, flood] = await Promise.all([connect(server.url), connect(server.url), connect(server.url)])
  await sleeper.query('listen anything')
  await sleeper.query('begin')
  await sleeper.query('select 1')

  const notify = `select pg_notify('anything', repeat('x', 7900)), pg_notification_queue_usage() as usage`
  await eventually(async () => (await flood.query(notify)).rows[0].usage > 0.5, { every: 0 })
  await eventually(() => reader.lines.find((line) => line.startsWith('warn the notification queue of the server')))
  await reader.reaches(await emit(writer))
  expect(reader.tailer.status().state).toBe('polling')

  const full = await eventually(() => flood.query(notify).then(() => undefined, String), { every: 0 })
  expect(full).toContain('too many notifications')
  await reader.reaches(await emit(writer))
  await writer.query('begin isolation level serializable')
  const { rows } = await writer.query(EMIT)
  await writer.query('commit')
  await reader.reaches(BigInt(rows[0].position))

  await sleeper.query('rollback')
  await reader.armed()
})

it('an idle process asks less than two questions a second', async () => {
  const { url, sql } = await openLog()
  const counted = await countQuestions(url)
  await instance({ database: counted.url }).start()
  await eventually(async () => (await sql.query('select from aftercommit.idle_marks')).rowCount === 1)
  // It comes to rest after its start; one that does not come to rest asks more in every round.
  await eventually(async () => {
    const before = counted.questions()
    const since = performance.now()
    await eventually(() => counted.questions() >= before + 6)
    return (performance.now() - since) / 1_000 > 6 / 2
  })
})

/** One reader and one writer alone on their log. Counts how often the reader was asleep when the writer committed. */
async function fallAsleepAroundCommits(major: 18 | 14, rounds: number) {
  const { url } = await testDatabase({ major, migrated: true })
  const reader = await openFollowing({ database: url, clock: impatientClock(20) })
  const [writer, ear] = await Promise.all([connect(url), connect(url)])
  const heard = await listen(ear)
  let asleep = 0
  let lost = 0
  let [foundBefore, ringsBefore] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    // Awake and without a mark; falling asleep begins in 50 ms and takes a few. The writer strikes somewhere around.
    // In this order: the mark that it writes next must not be the one that is deleted.
    await writer.query('delete from aftercommit.idle_marks')
    reader.tailer.bellWasLost()
    await pause(randomInt(30, 70))
    await writer.query(`begin isolation level ${ISOLATION[round % ISOLATION.length]}`)
    const { rows } = await writer.query(EMIT)
    await pause(randomInt(40))
    await writer.query('commit')
    if (reader.tailer.status().state === 'armed') asleep++
    await reader.reaches(BigInt(rows[0].position))
    // The poll may meet an event before its ring is heard, if the machine stood still. A bell is lost if it never rang.
    const rings = await heard()
    const found = reader.tailer.status().foundByFallback
    if (found > foundBefore && rings === ringsBefore) lost++
    foundBefore = found
    ringsBefore = rings
  }
  return { asleep, lost }
}

/** Listens to the bell. The answer counts what was heard, up to everything committed before the question. */
async function listen(client: pg.Client): Promise<() => Promise<number>> {
  let heard = 0
  client.on('notification', ({ channel, payload }) => {
    if (channel === 'aftercommit_bell' && payload === '') heard++
  })
  await client.query('listen aftercommit_bell')
  return async () => {
    await client.query('select 1')
    return heard
  }
}

async function emit(client: pg.Client): Promise<bigint> {
  const { rows } = await client.query(EMIT)
  return BigInt(rows[0].position)
}

async function listenSessions(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query(
    `select pid from pg_stat_activity
      where datname = current_database() and application_name like 'aftercommit:listen %'`,
  )
  return rows.map(({ pid }) => pid)
}

/** Writers that commit one event after the other until told to stop. */
async function startLoad(url: string, writers: number) {
  let running = true
  const committed = Array.from({ length: writers }, () => 0)
  const clients = await Promise.all(committed.map(() => connect(url)))
  const ended = clients.map(async (client, n) => {
    while (running) {
      await client.query(EMIT)
      committed[n]!++
    }
  })
  const total = () => committed.reduce((sum, count) => sum + count)
  return {
    more(count: number): Promise<boolean> {
      const goal = total() + count
      return eventually(() => total() >= goal)
    },
    /** Resolves when every writer has ended what it is at now. */
    roundOfAll(): Promise<boolean> {
      const before = [...committed]
      return eventually(() => committed.every((count, n) => count > before[n]!))
    },
    async stop(): Promise<void> {
      running = false
      await Promise.all(ended)
    },
  }
}

/** A way to the server on which every message of a client is counted: at least one per statement. */
async function countQuestions(url: string): Promise<{ url: string; questions(): number }> {
  const { dial: target, credentials, database } = addressOf(url)
  let count = 0
  const relay = createServer((client) => {
    const server = dial(target)
    client.on('data', () => count++)
    client.on('error', () => server.destroy())
    server.on('error', () => client.destroy())
    client.pipe(server).pipe(client)
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void relay.close())
  const { port } = relay.address() as AddressInfo
  return { url: `postgres://${credentials}@127.0.0.1:${port}/${database}`, questions: () => count }
}
