/**
 * What follows from an input is written as a whole or not at all, whatever dies when; an effect is done at least once and its
 * answer counts once; a timer fires once. What was done is read from a file that is not the product's.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript, type TestProcess } from '../support/processes.ts'
import { createProxy } from '../support/proxy.ts'
import { fulfilment } from '../workflows/support/fulfilment.ts'
import { openWorkflows } from '../workflows/support/open-workflows.ts'
import { keepRunning } from './support/chaos.ts'

beforeAll(buildPackage)

const SCRIPT = fileURLToPath(new URL('support/workflow.mjs', import.meta.url))

interface Call {
  readonly what: 'begin' | 'end'
  readonly id: string
  readonly idempotencyKey: string
  readonly attempt: number
  readonly pid: number
}

interface Behaviour {
  readonly dies?: { when: 'in the effect' | 'after the effect'; times?: number }
  readonly holdsUntil?: string
  readonly writes?: true | number
  readonly shutdown?: string
  readonly diesOnce?: { at: string; mark: string }
}

async function openPlay() {
  const { url, sql, rows } = await openWorkflows()
  const folder = mkdtempSync(join(tmpdir(), 'ac-workflow-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const ledger = join(folder, 'ledger')
  writeFileSync(ledger, '')
  return {
    url,
    sql,
    rows,
    flag: (name: string) => ({ path: join(folder, name), raise: () => writeFileSync(join(folder, name), '') }),
    calls: (what: Call['what']): Call[] =>
      readFileSync(ledger, 'utf8')
        .split('\n')
        // What follows the last end of a line is nothing, or the beginning of one that is being written.
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Call)
        .filter((call) => call.what === what),
    async start(behaviour: Behaviour = {}, env: Record<string, string> = {}): Promise<TestProcess> {
      const started = spawnScript(SCRIPT, [JSON.stringify({ url, ledger, ...behaviour })], env)
      await started.waitForLine('started')
      return started
    },
    /** From the side of whoever asks: nothing is run here. */
    async ask(id: string, { effect = true, timer = true } = {}): Promise<void> {
      const { rows: lanes } = await sql.query(
        `select aftercommit.delivery_lane('effect', 'task/do', '', '', 0::smallint) as effect,
                aftercommit.delivery_lane('timer', 'task', '', '', 0::smallint) as timer`,
      )
      const chain = { correlation: 'c' }
      const step = {
        type: 'task',
        id,
        version: 0,
        events: [
          { id: `${id}-1`, type: 'task.noted', payload: { type: 'noted' }, metadata: { correlation_id: 'c' } },
          { id: `${id}-2`, type: 'task.asked', payload: { type: 'asked' }, metadata: { correlation_id: 'c' } },
        ],
        at: Date.now(),
        timer_lane: lanes[0].timer,
        ...(effect && {
          effects: [
            {
              lane: lanes[0].effect,
              payload: { id: `task/${id}:1.0`, name: 'do', effect: { type: 'do', id }, generation: 1, chain },
            },
          ],
        }),
        ...(timer && {
          timers: [
            {
              payload: { input: { id, type: 'rang' }, key: 'bell', due: Date.now(), chain },
              unique_key: JSON.stringify([id, 'bell']),
              due: new Date().toISOString(),
            },
          ],
        }),
      }
      await sql.query(`select aftercommit.workflow_commit($1, '[]')`, [JSON.stringify([step])])
    },
    /** The types of its events, without the notes. */
    async history(id: string): Promise<string[]> {
      const found = await sql.query(
        `select payload ->> 'type' as type from aftercommit.events
          where aggregate_type = 'task' and aggregate_id = $1 and payload ->> 'type' <> 'noted' order by version`,
        [id],
      )
      return found.rows.map(({ type }) => type)
    },
  }
}

describe('a process that is killed', () => {
  it('at any moment leaves every step whole: events, instance, key, effect, timers and what is kept of inputs, or none', async () => {
    const { start, sql, rows } = await openPlay()
    for (let kill = 0; kill < 6; kill++) {
      const writer = await start({ writes: true })
      await writer.waitForLine('writing')
      const before = await rows('workflow_instances')
      await eventually(async () => (await rows('workflow_instances')) > before + kill * 7)
      writer.kill('SIGKILL')
      await writer.exited
    }
    // What they had begun is finished by another, and then everything must add up.
    const last = await start()
    await eventually(async () => (await rows('deliveries')) === 0, { deadline: 120_000 })
    last.kill('SIGTERM')
    await last.exited
    const { rows: wrong } = await sql.query(
      `select i.id, i.version, e.count, e.types
         from aftercommit.workflow_instances i
        cross join lateral (select count(*) as count, array_agg(e.version::int order by e.position) as versions,
                                   string_agg(e.payload ->> 'type', ' ' order by e.version) as types
                              from aftercommit.events e
                             where e.aggregate_type = i.type and e.aggregate_id = i.id) e
        where i.version <> e.count or e.versions <> array(select generate_series(1, i.version::int))
           or e.types not in ('noted asked noted done noted rang', 'noted asked noted rang noted done')`,
    )
    expect(wrong).toEqual([])
    expect(await rows('workflow_instances')).toBeGreaterThan(20)
    // Each was asked with an id and is not over; each of its three inputs was observed, and its reminder was cancelled.
    const instances = await rows('workflow_instances')
    expect(await rows('workflow_keys')).toBe(instances)
    expect(await rows('workflow_inputs')).toBe(instances)
    expect(await rows('input_observations')).toBe(3 * instances)
    const { rows: strangers } = await sql.query(
      `select from aftercommit.events e
        where e.aggregate_type = 'task'
          and not exists (select from aftercommit.workflow_instances i where i.type = 'task' and i.id = e.aggregate_id)`,
    )
    expect(strangers).toEqual([])
    expect(await rows('letters')).toBe(0)
  })

  it('after an effect and before its answer is stored: the effect runs again with the same key, the answer counts once', async () => {
    const play = await openPlay()
    const place = keepRunning(() => play.start({ dies: { when: 'after the effect', times: 1 } }))
    await play.ask('a')
    await eventually(async () => (await play.history('a')).length === 3, { deadline: 60_000 })
    await place.stop()
    expect((await play.history('a')).sort()).toEqual(['asked', 'done', 'rang'])
    const begun = play.calls('begin')
    expect(begun).toHaveLength(2)
    expect(new Set(begun.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set(['task/a:1.0']))
  })

  it('by an effect each time: that one becomes a dead letter after its attempts, and the workflow hears of it', async () => {
    const play = await openPlay()
    const place = keepRunning(() => play.start({ dies: { when: 'in the effect' } }))
    await play.ask('a')
    const isOver = async () => (await play.history('a')).includes('failed') && (await play.rows('deliveries')) === 0
    await eventually(isOver, { deadline: 60_000 })
    await place.stop()
    const { rows: letters } = await play.sql.query('select kind, owner, key, status, error from aftercommit.letters')
    expect(letters).toMatchObject([
      { kind: 'effect', owner: 'task', key: 'a', status: 'resolved', error: { code: 'PROCESS_DIED' } },
    ])
    expect(await play.rows('workflow_instances', 'completed_at is not null')).toBe(1)
  })
})

it.each([
  ['load', 'before its instance is loaded'],
  ['decision', 'while it is decided'],
  ['commit', 'before the decision is sent'],
  ['sent', 'when the decision has been sent'],
])(
  'of a process that is killed at the %s, %s, a timer fires once and the answer of an effect counts once',
  async (at) => {
    for (const [asked, end] of [
      [{ effect: false }, 'rang'],
      [{ timer: false }, 'done'],
    ] as const) {
      const play = await openPlay()
      const mark = play.flag('died').path
      const place = keepRunning(() => play.start({ diesOnce: { at, mark } }))
      await play.ask('a', asked)
      await eventually(async () => (await play.rows('deliveries')) === 0, { deadline: 60_000 })
      await place.stop()
      expect(existsSync(mark), 'it never died').toBe(true)
      expect(await play.history('a')).toEqual(['asked', end])
      expect(await play.rows('letters')).toBe(0)
      expect(new Set(play.calls('begin').map(({ idempotencyKey }) => idempotencyKey)).size).toBe(end === 'done' ? 1 : 0)
    }
  },
)

it('three processes that ask at the same time do each effect once', async () => {
  const play = await openPlay()
  const writers = await Promise.all([1, 2, 3].map(() => play.start({ writes: 110 })))
  await Promise.all(writers.map((writer) => writer.waitForLine('written', 120_000)))
  await eventually(async () => (await play.rows('deliveries')) === 0, { deadline: 120_000 })
  const begun = play.calls('begin')
  expect(begun).toHaveLength(990)
  expect(new Set(begun.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(990)
  expect(await play.rows('workflow_instances', 'version = 6')).toBe(990)
  expect(await play.rows('letters')).toBe(0)
})

it('a process that is told to end waits for its effects, and gives back what outlasts its patience', async () => {
  const play = await openPlay()
  const release = play.flag('release')
  const patient = await play.start({ holdsUntil: release.path })
  await play.ask('a', { timer: false })
  await eventually(() => play.calls('begin').length === 1)
  patient.kill('SIGTERM')
  release.raise()
  expect(await patient.exited).toEqual({ code: 0, signal: null })
  expect([await play.history('a'), await play.rows('deliveries')]).toEqual([['asked', 'done'], 0])

  const hasty = await play.start({ holdsUntil: play.flag('never').path, shutdown: '200ms' })
  await play.ask('b', { timer: false })
  await eventually(() => play.calls('begin').length === 2)
  hasty.kill('SIGTERM')
  await hasty.exited
  // At once, and not as what a dead process has left.
  expect(await play.rows('deliveries', 'token is null')).toBe(1)
  await play.start()
  await eventually(async () => (await play.history('b')).length === 2)
  expect(await play.history('b')).toEqual(['asked', 'done'])
})

it.each(['3600000', '-3600000', 'jumping'])(
  'by the clock of a process that is wrong (%s) no timer is early or late',
  async (SHIFT_MS) => {
    const play = await openPlay()
    const clock = new URL('support/shifted-clock.mjs', import.meta.url).href
    const writer = await play.start({ writes: 3 }, { SHIFT_MS, NODE_OPTIONS: `--import ${clock}` })
    await writer.waitForLine('written')
    await eventually(async () => (await play.rows('deliveries')) === 0, { deadline: 60_000 })
    expect(await play.rows('workflow_instances', 'version = 6')).toBe(9)
    const { rows } = await play.sql.query(
      `select count(*)::int as wrong from aftercommit.events
        where abs(extract(epoch from occurred_at - clock_timestamp())) > 600 or payload ->> 'type' = 'late'`,
    )
    expect(rows).toEqual([{ wrong: 0 }])
  },
)

it('a process that slept past its lease changes nothing when it wakes', async () => {
  const play = await openPlay()
  const release = play.flag('release')
  const sleeper = await play.start({ holdsUntil: release.path })
  await play.ask('a')
  // Asleep in the effect, and not in the middle of firing the timer.
  await eventually(async () => play.calls('begin').length === 1 && (await play.history('a')).includes('rang'))
  const { rows } = await play.sql.query('select worker from aftercommit.delivery_workers')
  sleeper.kill('SIGSTOP')
  release.raise()
  await play.start()
  await eventually(async () => {
    // Again if need be: a renewal that it had sent before it slept may come after.
    await play.sql.query(`update aftercommit.processes set lease_until = '-infinity' where lease = $1`, [
      rows[0].worker,
    ])
    return (await play.history('a')).includes('done')
  })
  const before = await play.history('a')
  sleeper.kill('SIGCONT')
  await eventually(() => play.calls('end').some(({ pid }) => pid === sleeper.pid))
  sleeper.kill('SIGTERM')
  await sleeper.exited
  expect((await play.history('a')).filter((type) => type === 'done')).toEqual(['done'])
  expect(await play.history('a')).toEqual(expect.arrayContaining(before))
  expect(play.calls('begin')).toHaveLength(2)
})

describe('a connection that is cut', () => {
  it('after any part of the answers: the input was applied as a whole, or not at all, and the caller can repeat it', async () => {
    const { url, sql, rows } = await openWorkflows()
    const proxy = await createProxy(url)
    const direct = createAftercommit({ database: url })
    onTestFinished(() => direct.stop())
    direct.workflows.register(fulfilment)
    let applied = 0
    let unknown = 0
    const cuts = Array.from({ length: 20 }, (_, n) => n * 45)
    for (const bytes of cuts) {
      const ac = createAftercommit({ database: proxy.url, poolSize: 1 })
      ac.workflows.register(fulfilment)
      await ac.workflows.execute(fulfilment, { type: 'place', orderId: `warm-${bytes}`, total: 1 })
      const id = `cut-${bytes}`
      const place = { type: 'place', orderId: id, total: 1, key: id } as const
      proxy.cutAfter(bytes)
      const outcome = await ac.workflows.execute(fulfilment, place, { inputId: id }).catch((error) => error)
      proxy.pass()
      await ac.stop()
      if (outcome.code === 'OUTCOME_UNKNOWN') unknown++
      const state = await direct.workflows.query(fulfilment, id)
      const found = await sql.query(`select from aftercommit.deliveries where key = $1`, [id])
      expect([id, found.rowCount]).toEqual([id, state === undefined ? 0 : 2])
      expect([id, await rows('workflow_keys', `id = '${id}'`)]).toEqual([id, state === undefined ? 0 : 1])
      if (state !== undefined) applied++
      const again = await direct.workflows.execute(fulfilment, place, { inputId: id })
      expect(again.outcome).toBe('accepted')
      expect((await direct.workflows.query(fulfilment, id))!.version).toBe(1)
    }
    expect(applied).toBeGreaterThan(0)
    expect(applied).toBeLessThan(cuts.length)
    expect(unknown).toBeGreaterThan(0)
  })
})
