/** A product at work. Each statement that it sends often is sent here at least once, and each table that grows has rows. */
import {
  type Aftercommit,
  accept,
  after,
  createAftercommit,
  defineWorkflow,
  GiveUp,
  idempotent,
} from '../../../src/index.ts'
import { eventually } from '../../support/eventually.ts'

const QUICK = { maxAttempts: 2, initialDelay: '5ms' } as const

const parcel = defineWorkflow<{ steps: number }, { id: string }, { type: 'moved' }, { type: 'move' }>({
  type: 'parcel',
  id: ({ id }) => id,
  initial: () => ({ steps: 0 }),
  evolve: ({ steps }) => ({ steps: steps + 1 }),
  decide: ({ steps }, { id }) =>
    accept(
      [{ type: 'moved' }],
      steps === 0 ? { effects: [{ type: 'move' }], timers: [after('10ms', { id }, { key: 'next' })] } : {},
    ),
  isTerminal: ({ steps }) => steps === 9,
})

export async function playScenario(url: string): Promise<void> {
  const ac = createAftercommit({ database: url })
  try {
    const done = register(ac)
    await emitLamps(ac, 'before')
    await ac.start()
    for (const [observer, action] of [
      ['ringing', 'ring'],
      ['refusing', 'refuse'],
      ['waiting', 'later'],
    ] as const) {
      const retry = { maxAttempts: 3, initialDelay: '1h' }
      await ac.observers.add({
        name: observer,
        on: 'lamp.lit',
        retry,
        actions: [{ type: 'custom', name: action, handler: action }],
      })
    }
    await emitLamps(ac, 'after')
    await Promise.all(['1', '2', '3'].map((id) => ac.workflows.execute(parcel, { id })))
    await eventually(() => done.moved >= 3 && done.handled.has('after-3') && done.rung.size > 0)
    await eventually(async () => (await ac.deadLetters.count({ kind: 'subscription' })) > 0)
    await eventually(async () => (await ac.deadLetters.count({ kind: 'action' })) > 0)
    await readAll(ac)
    done.works = true
    await ac.deadLetters.redrive(
      { kind: 'subscription', ids: [(await ac.deadLetters.list({ kind: 'subscription' }))[0]!.id] },
      { who: 'ada' },
    )
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) > 0)
  } finally {
    await ac.stop()
  }
}

function register(ac: Aftercommit) {
  const done = { handled: new Set<string>(), rung: new Set<string>(), moved: 0, works: false }
  ac.subscribe({
    id: 'keyed',
    on: ['lamp.*'],
    from: 'start',
    retry: QUICK,
    handle({ id, payload }) {
      if ((payload as { broken: boolean }).broken && !done.works) throw new Error('broken')
      done.handled.add(id)
    },
  })
  ac.subscribe({ id: 'typed', on: ['lamp.rare'], from: 'start', handle: () => {} })
  ac.subscribe({ id: 'batches', on: ['lamp.*'], from: 'start', handleBatch: () => {} })
  ac.subscribe({ id: 'once', from: 'start', transactional: true, handle: idempotent(() => {}) })
  ac.observers.action('ring', ({ id }) => void done.rung.add(id))
  ac.observers.action('refuse', () => {
    throw new GiveUp('closed')
  })
  ac.observers.action('later', () => {
    throw new Error('busy')
  })
  ac.workflows.register(parcel, { effects: { move: () => void done.moved++ } })
  return done
}

/** Three of two keys; the first one of each fails, so that others wait behind it. */
async function emitLamps(ac: Aftercommit, prefix: string): Promise<void> {
  const lamp = (n: number) => ({
    type: 'lamp.lit',
    id: `${prefix}-${n}`,
    aggregate: { type: 'lamp', id: n === 3 ? `${prefix} b` : `${prefix} a` },
    payload: { broken: n === 1 },
  })
  const { type, ...first } = lamp(1)
  await ac.emitNow(type, first)
  await ac.emitNow([lamp(2), lamp(3)])
}

async function readAll(ac: Aftercommit): Promise<void> {
  const aggregate = { type: 'lamp', id: 'before a' }
  await ac.log.read({ on: ['lamp.rare'], tenant: 'home' })
  await ac.log.list({ on: ['lamp.rare'] })
  await ac.log.list({ aggregate })
  await ac.log.stream(aggregate)
  await ac.log.last(aggregate)
  await ac.log.trace('before-1')
  await ac.log.get('before-1')
  await ac.workflows.history(parcel, '1')
  await ac.workflows.query(parcel, '1')
  await ac.deliveries.list({})
  await ac.deliveries.list({ kind: 'action', newest: true })
  await ac.deadLetters.list({})
  await ac.observers.explain('before-1')
}
