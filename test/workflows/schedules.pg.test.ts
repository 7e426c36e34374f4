import type pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Aftercommit, GiveUp, type ScheduleOptions } from '../../src/index.ts'
import { readCron } from '../../src/workflows/cron.ts'
import { eventually } from '../support/eventually.ts'
import { counter } from './support/fulfilment.ts'
import { type OpenWorkflows, openWorkflows } from './support/open-workflows.ts'

const emit = (due: Date) => ({ type: 'clock.struck', payload: { due: due.toISOString() } })

/** A process that knows the schedule, started. */
async function begin(open: OpenWorkflows['open'], schedule: Partial<ScheduleOptions> = {}) {
  const ac = open()
  await ac.schedules.add({ id: 'daily', cron: '0 3 * * *', emit, ...schedule })
  await ac.start()
  return ac
}

/** The times it has fired for, in the order of the log. */
async function struck(ac: Aftercommit): Promise<string[]> {
  const events = await ac.log.list({ on: ['clock.struck'], limit: 1_000 })
  return events.map(({ payload }) => (payload as { due: string }).due).reverse()
}

/** What fires next is due now, and was due then. */
async function makeDue(ac: Aftercommit, sql: pg.Client, due: string): Promise<void> {
  await sql.query(
    `update aftercommit.deliveries set payload = jsonb_build_object('due', $1::float8) where unique_key = 'daily'`,
    [Date.parse(due)],
  )
  expect(await ac.deliveries.retry({ name: 'schedule:daily' })).toBe(1)
}

async function nextAt(ac: Aftercommit): Promise<string | undefined> {
  return (await ac.schedules.list())[0]?.nextAt?.toISOString()
}

const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString()

describe('a schedule', () => {
  it('fires in one of all processes, does what it does with the next time in one transaction, and is stored', async () => {
    const { open, sql, rows } = await openWorkflows()
    const processes = [open(), open()]
    for (const ac of processes) {
      ac.workflows.register(counter)
      await ac.schedules.add({ id: 'count', cron: '* * * * * *', execute: { workflow: counter, input: { id: 'a' } } })
      await ac.schedules.add({
        id: 'tell',
        cron: '* * * * * *',
        zone: 'Europe/Berlin',
        emit: (due) => ({ type: 'clock.struck', payload: { due: due.toISOString() } }),
      })
      await ac.start()
    }
    const [ac] = processes
    const told = async () => ac!.log.list({ on: ['clock.struck'], limit: 100 })
    await eventually(
      async () => (await told()).length >= 2 && ((await ac!.workflows.query(counter, 'a'))?.version ?? 0) >= 2,
    )
    const events = await told()
    const due = events.map(({ payload }) => (payload as { due: string }).due)
    expect(new Set(due).size).toBe(due.length)
    expect(events.every(({ metadata }) => metadata.depth === 0)).toBe(true)
    expect(await ac!.schedules.list()).toMatchObject([
      { id: 'count', zone: 'UTC', action: 'execute counter' },
      { id: 'tell', zone: 'Europe/Berlin', action: 'emit' },
    ])
    expect(await rows('deliveries', 'unique_key is not null')).toBe(2)
    for (const process of processes)
      await process.schedules.remove('count').then(() => process.schedules.remove('tell'))
    expect(await rows('schedules')).toBe(0)
    expect((await sql.query('select from aftercommit.deliveries')).rowCount).toBe(0)
  })

  it('due during an outage fires once, and goes on with the next time', async () => {
    const { open, sql } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    const add = (process: typeof ac) =>
      process.schedules.add({ id: 'daily', cron: '0 3 * * *', execute: { workflow: counter, input: { id: 'a' } } })
    await add(ac)
    await ac.start()
    await ac.stop()
    await sql.query(`update aftercommit.deliveries set run_at = clock_timestamp() - interval '5 days'`)
    const other = open()
    other.workflows.register(counter)
    await add(other)
    await other.start()
    await eventually(async () => (await other.workflows.query(counter, 'a'))?.version === 1)
    const [schedule] = await other.schedules.list()
    expect(schedule!.nextAt!.getTime()).toBeGreaterThan(schedule!.lastAt!.getTime())
    expect(schedule!.nextAt!.getUTCHours()).toBe(3)
  })

  it('with another time takes it; the same time again changes nothing', async () => {
    const { open } = await openWorkflows()
    const nextAt = async (cron: string) => {
      const ac = open()
      await ac.schedules.add({ id: 'daily', cron, emit: { type: 'day.began', payload: null } })
      await ac.start()
      const [schedule] = await ac.schedules.list()
      return schedule!.nextAt!.getUTCHours()
    }
    expect([await nextAt('0 3 * * *'), await nextAt('0 3 * * *'), await nextAt('0 4 * * *')]).toEqual([3, 3, 4])
  })

  it('that nobody can read, or that has nothing to do, is refused', async () => {
    const { open } = await openWorkflows()
    const { schedules } = open()
    const emit = { type: 'a.b', payload: null }
    await expect(schedules.add({ id: 'x', cron: 'every day', emit })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(schedules.add({ id: 'x', cron: '* * * * *', zone: 'Moon/Base', emit })).rejects.toThrow(/time zone/)
    await expect(schedules.add({ id: 'x', cron: '* * * * *' })).rejects.toThrow(/either `emit` or `execute`/)
    await expect(schedules.add({ id: 'x y', cron: '* * * * *', emit })).rejects.toThrow(/needs an `id`/)
  })
})

describe('while a deploy changes its time', () => {
  const never = '0 3 1 1 *'
  const always = '* * * * * *'

  it('a process that knows the time before goes on with the time that is stored', async () => {
    const { open } = await openWorkflows()
    const old = await begin(open, { cron: never })
    await (await begin(open, { cron: always })).stop()
    await eventually(async () => (await struck(old)).length >= 3)
    expect(await old.schedules.list()).toMatchObject([{ cron: always }])
  })

  it('also after what that process could not do', async () => {
    const { open } = await openWorkflows()
    const fails = () => {
      throw new GiveUp('closed')
    }
    const old = await begin(open, { cron: never, emit: fails })
    await (await begin(open, { cron: always, zone: 'Europe/Berlin', emit: fails })).stop()
    await eventually(async () => (await old.deadLetters.count({ owner: 'schedule:daily' })) >= 3)
    const [schedule] = await old.schedules.list()
    expect(schedule).toMatchObject({ cron: always, zone: 'Europe/Berlin', lastAt: null })
  })

  it('what was due before fires yet, once, and then comes the new time', async () => {
    const { open, sql } = await openWorkflows()
    await (await begin(open)).stop()
    await sql.query(
      `update aftercommit.deliveries set run_at = $1::timestamptz, payload = jsonb_build_object('due', $2::float8)`,
      [YESTERDAY, Date.parse(YESTERDAY)],
    )
    const ac = await begin(open, { cron: '0 4 * * *' })
    await eventually(async () => (await struck(ac)).length > 0)
    expect(await struck(ac)).toEqual([YESTERDAY])
    expect(new Date((await nextAt(ac))!).getUTCHours()).toBe(4)
  })

  it('what it does is told as it is now', async () => {
    const { open } = await openWorkflows()
    const old = await begin(open)
    const time = await nextAt(old)
    await begin(open, { emit: { type: 'day.began', payload: null } })
    expect(await old.schedules.list()).toMatchObject([{ action: 'emit day.began' }])
    expect(await nextAt(old)).toBe(time)
  })

  it('processes that store different times at once leave one of them, whole', async () => {
    const { open, sql, rows } = await openWorkflows()
    const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Asia/Kolkata', 'Australia/Lord_Howe']
    const [ac] = await Promise.all(zones.map((zone, n) => begin(open, { zone, cron: `${n} ${n} 1 1 *` })))
    const [stored, ...none] = await ac!.schedules.list()
    expect(none).toEqual([])
    const hour = zones.indexOf(stored!.zone)
    expect(stored!.cron).toBe(`${hour} ${hour} 1 1 *`)
    const expected = (await readCron('daily', stored!.cron, stored!.zone)).next(new Date())!
    expect(stored!.nextAt).toEqual(expected)
    expect(await rows('deliveries')).toBe(1)
    expect((await sql.query('select run_at from aftercommit.deliveries')).rows).toEqual([{ run_at: expected }])
  })
})

describe('a dead letter of a schedule', () => {
  async function withLetter() {
    const opened = await openWorkflows()
    const broken = { now: true }
    const fails = (due: Date) => {
      if (broken.now) throw new GiveUp('closed')
      return emit(due)
    }
    const ac = await begin(opened.open, { emit: fails })
    await makeDue(ac, opened.sql, YESTERDAY)
    const letter = await eventually(async () => (await ac.deadLetters.list({ owner: 'schedule:daily' }))[0])
    return { ...opened, ac, broken, letter }
  }

  it('is redriven: it fires once more for the time it was due, and its next time stays', async () => {
    const { ac, broken, letter, rows } = await withLetter()
    const next = await nextAt(ac)
    broken.now = false
    expect(await ac.deadLetters.redrive(letter.id)).toBe(1)
    await eventually(async () => (await ac.deadLetters.show(letter.id))!.status === 'resolved')
    expect(await struck(ac)).toEqual([YESTERDAY])
    expect(await nextAt(ac)).toBe(next)
    expect(await rows('deliveries')).toBe(1)
    expect(await rows('deliveries', `unique_key = 'daily' and run_at > now()`)).toBe(1)
  })

  it('that fails again is dead again, and its next time stays', async () => {
    const { ac, letter, rows } = await withLetter()
    const next = await nextAt(ac)
    await ac.deadLetters.redrive(letter.id)
    await eventually(async () => {
      const { status, attempts } = (await ac.deadLetters.show(letter.id))!
      return status === 'dead' && attempts === 2
    })
    expect(await nextAt(ac)).toBe(next)
    expect(await rows('deliveries')).toBe(1)
    expect(await ac.deadLetters.count()).toBe(1)
  })

  it('is redriven beside hundreds of marked letters that cannot be made work now', async () => {
    const { ac, sql, broken, letter, rows } = await withLetter()
    // Their unique key is taken by what fires next.
    await sql.query(
      `insert into aftercommit.letters (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at,
                                        last_attempt_at, parks, status, delivery)
       select kind, owner, key, 'copy:' || n, position - 1, event, error, attempts, first_attempt_at, last_attempt_at, parks,
              'redriving', delivery || jsonb_build_object('id', -n, 'unique_key', 'daily')
         from aftercommit.letters, generate_series(1, 250) n`,
    )
    broken.now = false
    await ac.deadLetters.redrive(letter.id)
    await eventually(async () => (await ac.deadLetters.show(letter.id))!.status === 'resolved')
    expect(await rows('letters', `status = 'redriving' and placed is null`)).toBe(250)
    expect(await struck(ac)).toEqual([YESTERDAY])
  })

  it('is discarded with the schedule', async () => {
    const { ac, letter } = await withLetter()
    expect(await ac.schedules.remove('daily')).toBe(true)
    expect(await ac.deadLetters.show(letter.id)).toMatchObject({
      status: 'discarded',
      reason: 'the schedule was removed',
    })
  })
})

describe('in a time zone', () => {
  // Far enough ahead to be later than now. 29 March and 25 October 2037 are when the clocks of Berlin change.
  const nights = {
    'a night without 02:30': ['2037-03-28T01:30Z', '2037-03-29T01:00Z', '2037-03-30T00:30Z', '2037-03-31T00:30Z'],
    'a night with two of them': ['2037-10-24T00:30Z', '2037-10-25T00:30Z', '2037-10-26T01:30Z', '2037-10-27T01:30Z'],
  }

  it.each(Object.entries(nights))('it fires once a night, over %s', async (_, night) => {
    const { open, sql } = await openWorkflows()
    const ac = await begin(open, { cron: '30 2 * * *', zone: 'Europe/Berlin' })
    const times = night.map((time) => new Date(time).toISOString())
    await makeDue(ac, sql, times[0]!)
    for (const time of times.slice(1)) {
      await eventually(async () => (await nextAt(ac)) === time)
      const { rows } = await sql.query('select run_at, payload from aftercommit.deliveries')
      expect(rows).toEqual([{ run_at: new Date(time), payload: { due: Date.parse(time) } }])
      expect(await ac.deliveries.retry({ name: 'schedule:daily' })).toBe(1)
    }
    await eventually(async () => (await struck(ac)).length >= times.length)
    expect(await struck(ac)).toEqual(times)
  })
})

describe('a process whose clock is wrong', () => {
  it.each([1, -1])('by %i h stores and fires by the clock of the database', async (hours) => {
    const { open, sql } = await openWorkflows()
    const hourOf = async () =>
      (await sql.query(`select date_trunc('hour', clock_timestamp()) + interval '1 hour' as next`)).rows[0].next as Date
    setClockBack(-hours)
    const before = await hourOf()
    const ac = await begin(open, { cron: '0 * * * *' })
    const stored = await nextAt(ac)
    expect([before.toISOString(), (await hourOf()).toISOString()]).toContain(stored)
    await makeDue(ac, sql, YESTERDAY)
    const first = await eventually(async () => (await ac.schedules.list())[0]!.lastAt ?? undefined)
    expect([before.toISOString(), (await hourOf()).toISOString()]).toContain(await nextAt(ac))
    const { rows } = await sql.query(
      `select abs(extract(epoch from clock_timestamp() - $1::timestamptz)) < 1800 as near`,
      [first.toISOString()],
    )
    expect(rows).toEqual([{ near: true }])
    expect(await struck(ac)).toEqual([YESTERDAY])
  })

  function setClockBack(hours: number): void {
    const RealDate = Date
    class WrongDate extends RealDate {
      constructor(...given: []) {
        super(...((given.length === 0 ? [WrongDate.now()] : given) as []))
      }
      static override now(): number {
        return RealDate.now() - hours * 3_600_000
      }
    }
    vi.stubGlobal('Date', WrongDate)
    onTestFinished(() => void vi.unstubAllGlobals())
  }
})

describe('removed', () => {
  /** Holds up whoever writes such a row until it is opened. */
  async function gate(sql: pg.Client, table: string, when: string) {
    await sql.query(`create function public.wait() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock_shared(42); return new; end'`)
    await sql.query(`create trigger gate before insert on aftercommit.${table} for each row when (${when})
      execute function public.wait()`)
    await sql.query('select pg_advisory_lock(42)')
    return () => sql.query('select pg_advisory_unlock(42)')
  }

  it('before what is claimed has begun, it does not fire', async () => {
    const { open, sql, rows, waiting } = await openWorkflows()
    const ac = await begin(open)
    const other = open()
    await sql.query('begin')
    await sql.query(`select pg_advisory_xact_lock(hashtextextended('"aftercommit" schedule daily', 0))`)
    const removed = other.schedules.remove('daily')
    await eventually(async () => (await waiting()) === 1)
    const id = (await ac.deliveries.list())[0]!.id
    await ac.deliveries.retry(id)
    await eventually(async () => (await waiting()) === 2)
    await sql.query('commit')
    expect(await removed).toBe(true)
    await eventually(() => ac.lines.some((line) => line.includes('claim lost')))
    expect(await struck(ac)).toEqual([])
    expect([await rows('deliveries'), await rows('schedules'), await rows('letters')]).toEqual([0, 0, 0])
  })

  it('while it fires, it fires once and never again', async () => {
    const { open, sql, rows, waiting } = await openWorkflows()
    const ac = await begin(open, { cron: '* * * * * *' })
    const openGate = await gate(sql, 'events', 'true')
    await eventually(async () => (await waiting()) === 1)
    const before = (await struck(ac)).length
    const removed = open().schedules.remove('daily')
    await eventually(async () => (await waiting()) === 2)
    await openGate()
    expect(await removed).toBe(true)
    expect((await struck(ac)).length).toBe(before + 1)
    expect([await rows('deliveries'), await rows('schedules')]).toEqual([0, 0])
  })

  it.each([
    ['a failure of it is written down', new Error('closed'), 'deliveries_0', 'new.attempts > 0'],
    ['it becomes a dead letter', new GiveUp('closed'), 'letters', 'true'],
  ])('while %s, nothing is left', async (_, error, table, condition) => {
    const { open, sql, rows, waiting } = await openWorkflows()
    const fails = () => {
      throw error
    }
    const ac = await begin(open, { emit: fails })
    const openGate = await gate(sql, table, condition)
    await makeDue(ac, sql, YESTERDAY)
    await eventually(async () => (await waiting()) === 1)
    const removed = open().schedules.remove('daily')
    await eventually(async () => (await blocked(sql)) === 2)
    await openGate()
    expect(await removed).toBe(true)
    await eventually(async () => (await blocked(sql)) === 0)
    expect([await rows('deliveries'), await rows('schedules')]).toEqual([0, 0])
  })

  const blocked = async (sql: pg.Client) =>
    Number(
      (
        await sql.query(
          `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).rows[0].count,
    )
})
