import { describe, expect, it } from 'vitest'
import { accept, defineWorkflow, reject, type Workflow } from '../../src/index.ts'
import { makePartitionsSmall, publishFrontier } from '../log/support/small-partitions.ts'
import { eventually } from '../support/eventually.ts'
import { type OpenWorkflows, openWorkflows } from './support/open-workflows.ts'

interface Pour {
  readonly id: string
  readonly ml: number
}

type Poured = { readonly type: 'poured' | 'filled' | 'spilled'; readonly ml: number; readonly into?: object }

interface Glass {
  readonly ml: number
  readonly sips: number
  readonly lifted?: boolean
}

interface GlassOptions {
  readonly every?: number
  readonly stateVersion?: number
  readonly decode?: (stored: unknown) => Glass
  readonly evolve?: (state: Glass, event: Poured) => Glass
  readonly decide?: (state: Glass, input: Pour) => [Poured, ...Poured[]] | { why: string; at: number }
}

const pour = (_: Glass, { ml }: Pour): [Poured, ...Poured[]] | { why: string; at: number } =>
  ml > 0 ? [{ type: 'poured', ml }] : { why: 'empty', at: ml }

/** Filled sip by sip; over at 1000. */
function glassOf({ every = 0, stateVersion = 1, decode, evolve, decide = pour }: GlassOptions = {}) {
  return defineWorkflow<Glass, Pour, Poured, never, { why: string; at: number }>({
    type: 'glass',
    id: ({ id }) => id,
    initial: () => ({ ml: 0, sips: 0 }),
    isTerminal: ({ ml }) => ml >= 1_000,
    evolve: evolve ?? (({ ml, sips }, event) => ({ ml: ml + event.ml, sips: sips + 1 })),
    decide(state, input) {
      const decided = decide(state, input)
      return Array.isArray(decided) ? accept(decided) : reject(decided)
    },
    snapshots: { every, version: stateVersion, ...(decode && { decode }) },
    observe: {},
  })
}

/** What another process with this code finds. */
async function checkWith(
  { open }: OpenWorkflows,
  workflow: Workflow<Glass, Pour, Poured, never, unknown>,
  values = false,
) {
  const ac = open()
  ac.workflows.register(workflow)
  const { types, findings } = await ac.workflows.check({ values })
  return { count: types[0]!, findings }
}

async function pourTimes(ac: ReturnType<OpenWorkflows['open']>, id: string, times: number, ml = 1): Promise<void> {
  const glass = glasses.get(ac)!
  for (let n = 0; n < times; n++) await ac.workflows.execute(glass, { id, ml })
}

const glasses = new WeakMap<object, ReturnType<typeof glassOf>>()

function openWith({ open }: OpenWorkflows, glass = glassOf()) {
  const ac = open()
  ac.workflows.register(glass)
  glasses.set(ac, glass)
  return ac
}

describe('an instance that goes on while it is checked', () => {
  it('is not accused: what came after the version that is looked at is left for the next check', async () => {
    const opened = await openWorkflows()
    const { sql } = opened
    const glass = glassOf()
    const ac = openWith(opened, glass)
    await pourTimes(ac, 'a', 2)
    // The check has read the version of the instance, and waits for its observations.
    await sql.query('begin')
    await sql.query('lock table aftercommit.input_observations in access exclusive mode')
    const checked = checkWith(opened, glass)
    await eventually(async () => {
      const { rows } = await sql.query(
        // Databases of one template have the same numbers for their tables.
        `select from pg_locks where relation = 'aftercommit.input_observations'::regclass and not granted
            and database = (select oid from pg_database where datname = current_database())`,
      )
      return rows.length === 1
    })
    await ac.workflows.execute(glass, { id: 'a', ml: 5 }, { tx: sql })
    await ac.workflows.execute(glass, { id: 'a', ml: 0 }, { tx: sql })
    await sql.query('commit')
    expect(await checked).toMatchObject({ findings: [], count: { events: 2, decisions: 2 } })
    expect(await checkWith(opened, glass)).toMatchObject({ findings: [], count: { events: 3, decisions: 4 } })
  })
})

describe('a log with retention', () => {
  /** Everything up to the last event is older than the retention, and whole partitions of it go. */
  async function letGo({ sql }: OpenWorkflows, ac: ReturnType<OpenWorkflows['open']>): Promise<void> {
    await sql.query(`update aftercommit.settings set retention = '1 hour'`)
    await sql.query(`update aftercommit.events set recorded_at = recorded_at - interval '2 hours'`)
    const { rows } = await sql.query('select max(position)::int as last from aftercommit.events')
    await publishFrontier(sql, rows[0].last)
    // A partition that autovacuum looks at just then is left for later.
    await eventually(async () => (await ac.upkeep()).dropped.length > 0)
  }

  async function openSmall() {
    const opened = await openWorkflows()
    await makePartitionsSmall(opened.sql)
    return opened
  }

  it('counts what is over and cannot be checked apart, and begins at a snapshot where there is one', async () => {
    const opened = await openSmall()
    const snapping = glassOf({ every: 30 })
    const ac = openWith(opened, snapping)
    await pourTimes(ac, 'over', 2, 500)
    await pourTimes(ac, 'open', 130)
    await letGo(opened, ac)
    const { findings, count } = await checkWith(opened, snapping)
    expect(findings).toEqual([])
    // The snapshot of event 120 is the only one left; ten inputs came after it.
    expect(count).toMatchObject({ instances: 2, events: 10, decisions: 10, fromSnapshot: 1, notCheckable: 1 })
    const careless = await checkWith(opened, glassOf({ every: 30, decide: () => [{ type: 'filled', ml: 1 }] }))
    expect(careless.findings).toHaveLength(10)
    expect(careless.findings[0]).toMatchObject({ id: 'open', version: 120, about: 'decision' })
  })

  it('still finds an instance that is not over and has lost what it needs', async () => {
    const opened = await openSmall()
    const ac = openWith(opened)
    await pourTimes(ac, 'a', 3)
    await pourTimes(ac, 'b', 130)
    await opened.sql.query('update aftercommit.workflow_instances set needed_after = 130')
    await letGo(opened, ac)
    const { findings, count } = await checkWith(opened, glassOf())
    expect(findings).toMatchObject([
      { id: 'a', version: 0, about: 'event' },
      { id: 'b', version: 0, about: 'event' },
    ])
    expect(findings[0]!.message).toContain('Event 1 of workflow glass/a is not in the log any more')
    expect(count).toMatchObject({ notCheckable: 0, fromSnapshot: 0 })
  })

  it('warns of a higher `snapshots.version` while the events are there, and finds it once they are not', async () => {
    const opened = await openSmall()
    const ac = openWith(opened, glassOf({ every: 30 }))
    await pourTimes(ac, 'a', 130)
    const raised = glassOf({ every: 30, stateVersion: 2 })
    expect((await checkWith(opened, glassOf({ every: 30 }))).count.outdated).toBe(0)
    expect(await checkWith(opened, raised)).toMatchObject({ findings: [], count: { events: 130, outdated: 1 } })
    await letGo(opened, ac)
    const { findings } = await checkWith(opened, raised)
    expect(findings).toMatchObject([{ id: 'a', version: 120, about: 'snapshot', position: 120n }])
    expect(findings[0]!.message).toMatch(/`snapshots.version` 1, which this code does not use/)
    await expect(openWith(opened, raised).workflows.query(raised, 'a')).rejects.toMatchObject({ code: 'HISTORY_LOST' })
  })

  it('finds a snapshot that the code cannot read, when it must begin there', async () => {
    const opened = await openSmall()
    const ac = openWith(opened, glassOf({ every: 30 }))
    await pourTimes(ac, 'a', 130)
    await letGo(opened, ac)
    const decode = () => {
      throw new RangeError('1 ml of secret')
    }
    const { findings } = await checkWith(opened, glassOf({ every: 30, decode }))
    expect(findings).toMatchObject([
      { version: 120, about: 'snapshot', message: expect.stringContaining('RangeError') },
    ])
    expect(JSON.stringify(findings[0]!.message)).not.toContain('secret')
  })

  it('is not blamed for an event that somebody removed', async () => {
    const opened = await openWorkflows()
    const ac = openWith(opened)
    await pourTimes(ac, 'a', 2, 500)
    await opened.sql.query('delete from aftercommit.events where version = 1')
    expect(await checkWith(opened, glassOf())).toMatchObject({
      findings: [{ id: 'a', version: 0, about: 'event' }],
      count: { notCheckable: 0 },
    })
  })
})

describe('a finding', () => {
  async function poured() {
    const opened = await openWorkflows()
    const ac = openWith(opened, glassOf({ every: 2 }))
    await pourTimes(ac, 'a', 1, 7)
    await ac.workflows.execute(glasses.get(ac)!, { id: 'a', ml: 30 }, { inputId: 'second' })
    await ac.workflows.execute(glasses.get(ac)!, { id: 'a', ml: -1 })
    return opened
  }

  it('says which events would be others, of which type, version and position', async () => {
    const opened = await poured()
    const decide: GlassOptions['decide'] = (state, input) =>
      input.ml > 20
        ? [
            { type: 'filled', ml: 20 },
            { type: 'spilled', ml: 10 },
          ]
        : pour(state, input)
    const { findings } = await checkWith(opened, glassOf({ every: 2, decide }))
    expect(findings).toMatchObject([
      {
        version: 1,
        position: 1n,
        about: 'decision',
        message: 'An input would lead to other events now.',
        input: { type: null, id: 'second', decidedAt: expect.any(Date) },
        events: [
          { version: 2, position: 2n, recorded: 'glass.poured', now: 'glass.filled', paths: [] },
          { version: 3, position: null, recorded: null, now: 'glass.spilled', paths: [] },
        ],
      },
    ])
  })

  it('names the paths of payloads that would differ; the values only if they are asked for', async () => {
    const opened = await poured()
    const decide: GlassOptions['decide'] = (state, input) =>
      input.ml > 20 ? [{ type: 'poured', ml: 29, into: { cup: 1 } }] : pour(state, input)
    const changed = glassOf({ every: 2, decide })
    const [finding] = (await checkWith(opened, changed)).findings
    expect(finding!.events).toEqual([
      {
        version: 2,
        position: 2n,
        recorded: 'glass.poured',
        now: 'glass.poured',
        paths: [{ path: 'payload.ml' }, { path: 'payload.into' }],
      },
    ])
    const [shown] = (await checkWith(opened, changed, true)).findings
    expect(shown!.events[0]!.paths).toMatchObject([
      { path: 'payload.ml', recorded: 30, now: 29 },
      { path: 'payload.into', now: { cup: 1 } },
    ])
  })

  it('names what differs in the reason of a rejection and in a snapshot', async () => {
    const opened = await poured()
    const rejecting: GlassOptions['decide'] = (state, input) =>
      input.ml < 0 ? { why: 'negative', at: input.ml } : pour(state, input)
    expect((await checkWith(opened, glassOf({ every: 2, decide: rejecting }))).findings).toMatchObject([
      { version: 2, about: 'decision', paths: [{ path: 'reason.why' }], events: [] },
    ])
    const counting: GlassOptions['evolve'] = ({ ml, sips }, event) => ({ ml: ml + event.ml, sips: sips + 2 })
    expect((await checkWith(opened, glassOf({ every: 2, evolve: counting }))).findings).toMatchObject([
      { version: 2, position: 2n, about: 'snapshot', paths: [{ path: 'state.sips' }] },
    ])
  })

  it('is not made of a snapshot in an older form that `decode` lifts, and is of one that it cannot read', async () => {
    const opened = await poured()
    const lifting = (stored: unknown) => ({ ...(stored as Glass), lifted: true })
    const evolve: GlassOptions['evolve'] = ({ ml, sips }, event) => ({
      ml: ml + event.ml,
      sips: sips + 1,
      lifted: true,
    })
    const lifted = await checkWith(opened, glassOf({ every: 2, evolve, decode: lifting }))
    expect(lifted).toMatchObject({ findings: [], count: { snapshots: 1 } })
    const decode = () => {
      throw new RangeError('37 ml')
    }
    expect((await checkWith(opened, glassOf({ every: 2, decode }))).findings.map(({ message }) => message)).toEqual([
      '`snapshots.encode` or `decode` fails on this snapshot (RangeError).',
    ])
  })

  it('says that code would fail, and by which error, without its words', async () => {
    const opened = await poured()
    const failing: GlassOptions['decide'] = (state, input) => {
      if (input.ml > 20) throw new RangeError(`${input.ml} ml`)
      return pour(state, input)
    }
    const { findings, count } = await checkWith(opened, glassOf({ every: 2, decide: failing }))
    expect(findings.map(({ about, message }) => `${about}: ${message}`)).toEqual([
      'decision: An input that was accepted would fail now (RangeError).',
    ])
    expect(count).toMatchObject({ events: 2, decisions: 3 })
  })
})
