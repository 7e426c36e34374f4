/** While a new release is rolled out, old and new code work on the same instances. What the old cannot do is left to the new. */
import { describe, expect, it } from 'vitest'
import { accept, after, defineWorkflow } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

const QUICKLY = { maxAttempts: 2, initialDelay: '1ms', maxDelay: '2ms' } as const

type Effect = { type: 'old' | 'new'; id: string }

const letters = defineWorkflow({
  type: 'letters',
  id: ({ id }: { id: string; ask: Effect['type'][] }) => id,
  initial: () => 0,
  evolve: (count, _: { type: 'asked' }) => count + 1,
  orderedEffects: true,
  decide: (_, { id, ask }) => accept([{ type: 'asked' }], { effects: ask.map((type): Effect => ({ type, id })) }),
})

describe('effects that go in order', () => {
  it('are left to a process that has a handler, and cost no attempt where there is none', async () => {
    const { open, sql } = await openWorkflows()
    const seen: string[] = []
    const older = open()
    older.workflows.register(letters, { effects: { old: () => void seen.push('old by older') } as never })
    await older.start()
    await older.workflows.execute(letters, { id: 'a', ask: ['old', 'new', 'old'] })
    const waiting = await eventually(async () => {
      const { rows } = await sql.query(
        `select attempts, error ->> 'code' as code from aftercommit.deliveries where error is not null and token is null`,
      )
      return rows[0]
    })
    expect([waiting, seen]).toEqual([{ attempts: 0, code: 'NO_HANDLER' }, ['old by older']])
    await older.stop()

    const newer = open()
    newer.workflows.register(letters, {
      effects: { old: () => void seen.push('old'), new: () => void seen.push('new') },
    })
    await newer.start()
    await eventually(() => seen.length === 3)
    expect(seen).toEqual(['old by older', 'new', 'old'])
    expect(await newer.deadLetters.count()).toBe(0)
  })

  it('have the settings of their handlers', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    const seen: string[] = []
    const failing = (name: string) => () => {
      seen.push(name)
      throw new Error('not now')
    }
    const once = { ...QUICKLY, maxAttempts: 1 }
    ac.workflows.register(letters, {
      effects: { old: { handle: failing('old'), retry: once }, new: { handle: failing('new'), retry: QUICKLY } },
    })
    await ac.start()
    await ac.workflows.execute(letters, { id: 'a', ask: ['old'] })
    await ac.workflows.execute(letters, { id: 'b', ask: ['new'] })
    await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 2)
    expect(seen.sort()).toEqual(['new', 'new', 'old'])
  })

  it('cannot be shared out: one that is to be done elsewhere is refused', async () => {
    const { open } = await openWorkflows()
    const ac = open()
    expect(() => ac.workflows.register(letters, { effects: { old: () => {}, new: 'elsewhere' } })).toThrow(
      /"letters" has `orderedEffects`.*none can be 'elsewhere'/,
    )
  })
})

describe('an instance that newer code has written', () => {
  const versioned = (version: number) =>
    defineWorkflow({
      type: 'versioned',
      id: ({ id }: { id: string; rings?: boolean }) => id,
      initial: () => 0,
      evolve: (count, _: { type: 'noted' }) => count + 1,
      events: { noted: { version, upcast: version === 2 ? { 1: (payload: unknown) => payload } : {} } },
      decide: (_, { id, rings }) =>
        rings
          ? accept([{ type: 'noted' }])
          : accept([{ type: 'noted' }], {
              effects: [{ type: 'ask' as const, id }],
              timers: [after('1ms', { id, rings: true }, { key: 'bell' })],
            }),
    })

  it('is left to it by older code, effects and timers, without an attempt', async () => {
    const { open, sql } = await openWorkflows()
    const asked: string[] = []
    const handlers = (who: string) => ({
      effects: {
        ask({ id }: { id: string }) {
          asked.push(who)
          return { id, rings: true }
        },
      },
    })
    // It writes and does nothing.
    const writer = open()
    const workflow = versioned(2)
    writer.workflows.register(workflow)
    await writer.workflows.execute(workflow, { id: 'a' })
    const older = open()
    older.workflows.register(versioned(1), handlers('older'))
    await older.start()
    await eventually(async () => {
      const { rows } = await sql.query(
        `select from aftercommit.deliveries where error ->> 'code' = 'SCHEMA_VERSION_TOO_NEW' and attempts = 0`,
      )
      return rows.length === 2
    })
    expect(asked).toEqual(['older'])
    await older.stop()
    await sql.query(`update aftercommit.deliveries set run_at = clock_timestamp()`)

    const newer = open()
    newer.workflows.register(workflow, handlers('newer'))
    await newer.start()
    await eventually(async () => (await newer.workflows.query(workflow, 'a'))?.version === 3)
    expect([asked, await newer.deadLetters.count()]).toEqual([['older', 'newer'], 0])
  })
})
