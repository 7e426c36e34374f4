/** Inputs are decided on what a process remembers of an instance. What counts is what is stored. */
import { describe, expect, it } from 'vitest'
import { accept, after, defineWorkflow, reject } from '../../src/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import { openWorkflows } from './support/open-workflows.ts'

type Input = { id: string; note: string; unless?: string; throwsUnless?: string }

/** Keeps every note it was given, and may refuse or throw by what it has. */
const notebook = defineWorkflow({
  type: 'notebook',
  id: ({ id }: Input) => id,
  initial: () => ({ notes: [] as string[] }),
  evolve: ({ notes }, { note }: { type: 'noted'; note: string }) => ({ notes: [...notes, note] }),
  decide({ notes }, { note, unless, throwsUnless }) {
    if (unless !== undefined && !notes.includes(unless)) return reject(`misses ${unless}`)
    if (throwsUnless !== undefined && !notes.includes(throwsUnless)) throw new TypeError(`misses ${throwsUnless}`)
    return accept([{ type: 'noted', note }])
  },
})

async function twoProcesses() {
  const all = await openWorkflows()
  const [one, two] = [all.open(), all.open()]
  for (const ac of [one, two]) ac.workflows.register(notebook)
  const notes = async (id: string) => (await one.workflows.history(notebook, id)).map(({ payload }) => payload.note)
  return { ...all, one, two, notes }
}

describe('two processes that remember the same instance', () => {
  it('with 32 callers on 8 instances write each accepted input once, in one history', async () => {
    const { one, two, notes } = await twoProcesses()
    const ids = Array.from({ length: 8 }, (_, n) => `hot-${n}`)
    const told = new Map(ids.map((id) => [id, [] as string[]]))
    const refused = new Map(ids.map((id) => [id, [] as string[]]))
    const call = async (caller: number) => {
      for (let n = 0; n < 40; n++) {
        const id = ids[(caller * 7 + n * (caller % 2 === 0 ? 1 : 3)) % ids.length]!
        const note = `${caller}.${n}`
        const input = { id, note, ...(n % 5 === 4 && { unless: `${caller}.${n - 1} on another instance` }) }
        const { outcome } = await [one, two][caller % 2]!.workflows.execute(notebook, input)
        ;(outcome === 'accepted' ? told : refused).get(id)!.push(note)
      }
    }
    await Promise.all(Array.from({ length: 32 }, (_, caller) => call(caller)))
    for (const id of ids) {
      const written = await notes(id)
      expect([...written].sort()).toEqual([...told.get(id)!].sort())
      expect(new Set(written).size).toBe(written.length)
      expect(refused.get(id)!.length).toBeGreaterThan(0)
      // A caller sees its own inputs in the order in which they were answered.
      for (let caller = 0; caller < 32; caller++) {
        const mine = written.filter((note) => note.startsWith(`${caller}.`)).map((note) => Number(note.split('.')[1]))
        expect(mine).toEqual([...mine].sort((a, b) => a - b))
      }
      for (const ac of [one, two]) {
        expect(await ac.workflows.query(notebook, id)).toMatchObject({
          state: { notes: written },
          version: written.length,
        })
      }
    }
  })

  it('do not refuse an input for a state that is over by then, and do not fail for it', async () => {
    const { one, two } = await twoProcesses()
    for (const unless of ['unless', 'throwsUnless']) {
      await one.workflows.execute(notebook, { id: unless, note: 'first' })
      await two.workflows.execute(notebook, { id: unless, note: 'second' })
      const input = { id: unless, note: 'third', [unless]: 'second' }
      expect((await one.workflows.execute(notebook, input)).outcome).toBe('accepted')
    }
  })

  it('do not take an instance for new that the other has begun', async () => {
    const { one, two, notes } = await twoProcesses()
    await one.workflows.execute(notebook, { id: 'a', note: 'first' })
    expect(await two.workflows.execute(notebook, { id: 'a', note: 'no', unless: 'nothing' })).toMatchObject({
      outcome: 'rejected',
    })
    await two.workflows.execute(notebook, { id: 'a', note: 'second', unless: 'first' })
    expect(await notes('a')).toEqual(['first', 'second'])
  })

  it('give a repeated input the outcome of the first', async () => {
    const { one, two, notes } = await twoProcesses()
    const input = { id: 'a', note: 'once' }
    const outcomes = await Promise.all(
      [one, two, one, two].map((ac) => ac.workflows.execute(notebook, input, { inputId: 'the same' })),
    )
    expect(outcomes).toEqual(Array(4).fill({ outcome: 'accepted', events: [{ type: 'noted', note: 'once' }] }))
    expect(await notes('a')).toEqual(['once'])
  })
})

it('an input whose answer is cut off anywhere is written once, and its caller hears so', async () => {
  const { url, open, rows } = await openWorkflows()
  const proxy = await createProxy(url)
  const ac = open({ database: proxy.url, poolSize: 2 })
  ac.workflows.register(notebook)
  await ac.workflows.execute(notebook, { id: 'warm', note: 'up' })
  for (let bytes = 0; bytes < 400; bytes += 20) {
    const id = `cut-${bytes}`
    const before = proxy.accepted
    proxy.cutAfter(bytes)
    const executed = ac.workflows.execute(notebook, { id, note: 'one' })
    const done = executed.then(
      (outcome) => outcome,
      (error) => error,
    )
    // The first answer is cut; from then on everything passes again.
    await Promise.race([done, eventually(() => proxy.accepted > before)])
    proxy.pass()
    expect([bytes, await done]).toMatchObject([bytes, { outcome: 'accepted' }])
    expect(await rows('workflow_instances', `id = '${id}' and version = 1`)).toBe(1)
    await ac.workflows.execute(notebook, { id, note: 'two', unless: 'one' })
  }
})

it('the time of a decision is not before the last event, nor a timer before it was due', async () => {
  const { open, sql, rows } = await openWorkflows()
  const ac = open()
  const times: { due: number; now: number }[] = []
  const clock = defineWorkflow({
    type: 'clock',
    id: ({ id }: { id: string; due?: number }) => id,
    initial: () => 0,
    evolve: (count, _: { type: 'ticked' }) => count + 1,
    decide(count, { id, due }, { now }) {
      if (due !== undefined) times.push({ due, now: now.getTime() })
      if (count === 5) return accept([{ type: 'ticked' }])
      const next = now.getTime() + 5
      return accept([{ type: 'ticked' }], { timers: [after('5ms', { id, due: next })] })
    },
  })
  ac.workflows.register(clock)
  await ac.start()
  await Promise.all(Array.from({ length: 20 }, (_, n) => ac.workflows.execute(clock, { id: `${n}` })))
  await eventually(async () => (await rows('workflow_instances', "type = 'clock' and version = 6")) === 20)
  expect(times.length).toBeGreaterThanOrEqual(100)
  for (const { due, now } of times) expect(now).toBeGreaterThanOrEqual(due)

  // As after a switch to a server whose clock is behind.
  await sql.query(
    `update aftercommit.workflow_instances set last_event_at = clock_timestamp() + interval '1 hour' where id = '0'`,
  )
  const { rows: ahead } = await sql.query(
    `select floor(extract(epoch from last_event_at) * 1000)::float8 as ms from aftercommit.workflow_instances where id = '0'`,
  )
  await ac.workflows.execute(clock, { id: '0', due: 0 })
  expect(times.at(-1)!.now).toBeGreaterThanOrEqual(ahead[0].ms)
})

it('an instance that a transaction holds is waited for by its own input alone', async () => {
  const { url, one, notes, waiting } = await twoProcesses()
  await one.workflows.execute(notebook, { id: 'held', note: 'first' })
  const other = await connect(url)
  await other.query('begin')
  await other.query(`select aftercommit.workflow_load('notebook', 'held', true, 0, 0, 1)`)
  const held = one.workflows.execute(notebook, { id: 'held', note: 'second' })
  await Promise.all(['a', 'b', 'c'].map((id) => one.workflows.execute(notebook, { id, note: 'free' })))
  await eventually(async () => (await waiting()) === 1)
  await other.query('commit')
  await held
  expect(await notes('held')).toEqual(['first', 'second'])
})
