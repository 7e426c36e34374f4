/** Plays one run: everything in it follows from its seed. */
import { LEASES_CHANGED } from '../../src/processes/index.ts'
import { Cluster } from './cluster.ts'
import type { Safety } from './database/safeties.ts'
import { Store } from './database/store.ts'
import { planFaults } from './faults.ts'
import { Handlers } from './handlers.ts'
import { Ledger } from './ledger.ts'
import { Log } from './log.ts'
import { drawPlan, type Plan } from './plan.ts'
import { Random } from './random.ts'
import { World } from './world.ts'

export interface Run {
  readonly seed: number
  readonly steps: number
  /** What was broken; undefined when every promise was kept. */
  readonly violation: string | undefined
}

export interface PlayOptions {
  /** Safeties that are switched off. */
  readonly without?: readonly Safety[]
  /** Gets every note of the run. */
  readonly tell?: (line: string) => void
  /** Changes the plan that the seed draws. */
  readonly change?: (plan: Plan) => Plan
}

/** Once no fault begins any more, everything must be done within this time. */
const HEALED_WITHIN_MS = 30 * 60_000
/** A run that takes more steps than this goes round in circles. */
const MOST_STEPS = 400_000

export async function play(
  seed: number,
  { without = [], tell, change = (plan) => plan }: PlayOptions = {},
): Promise<Run> {
  const random = new Random(seed)
  const world = new World(random)
  world.tell = tell
  const plan = change(drawPlan(random))
  let violation: string | undefined
  const fail = (found: string) => {
    world.note(() => `VIOLATION ${found}`)
    violation ??= found
  }
  const byId = new Map<string, Ledger>()
  const ledgers: Ledger[] = []
  const store = new Store(
    world,
    {
      onTerm: () => {},
      onCheckpoint: (id, term) => byId.get(id)!.onCheckpoint(term),
      onLeft: (kind, owner, eventId, term) => byId.get(owner.split('/')[0]!)!.onLeft(kind, owner, eventId, term),
      onDone: (row) => byId.get(row.owner.split('/')[0]!)!.actions.onDone(row),
      onBell: () => cluster.tell(({ delivering }) => delivering.wake()),
      onWord: (word) =>
        cluster.tell(({ delivering, processLease }) =>
          word === LEASES_CHANGED ? processLease.heardOfChange() : delivering.nudged(),
        ),
    },
    new Set(without),
  )
  for (const one of plan.subscriptions) {
    store.addSubscription(one.id)
    const ledger = new Ledger(one, store, fail)
    ledgers.push(ledger)
    byId.set(one.id, ledger)
  }
  const log = new Log()
  let areFaultsOver = false
  let committed = 0
  let healedAt = 0
  const isHealed = () => areFaultsOver && committed === plan.events && world.now >= plan.troubleMs
  const kill = (process: Parameters<Cluster['kill']>[0]) => cluster.kill(process, 50)
  const handlers = new Handlers(plan, random, isHealed, kill)
  const cluster = new Cluster({ world, store, log, plan, ledgers, handlers: () => handlers, isHealed })

  const commit = () => {
    const event = log.commit(`k${random.whole(1, plan.keys)}`, random.chance(0.1) ? random.whole(1, 3) : 0)
    committed++
    for (const ledger of ledgers) ledger.committed(event)
    for (const { process, tailer } of cluster.running) {
      process.after(random.next() * 2 * plan.path.latencyMs, () => tailer.reached(event.position))
    }
    if (committed < plan.events) world.after(random.next() * 2 * plan.spacingMs, commit)
    else healedAt = world.now
  }

  const onRejection = (error: unknown) => fail(`a rejection that nothing handles: ${error}`)
  const restoreRandom = takeRandom(random)
  process.on('unhandledRejection', onRejection)
  try {
    world.after(random.next() * 100, commit)
    planFaults(world, store, cluster, plan, () => {
      areFaultsOver = true
      healedAt = world.now
    })
    cluster.startAll()
    const isDone = () => areFaultsOver && committed === plan.events && ledgers.every((ledger) => ledger.isDone)
    const isLate = () => isHealed() && world.now > Math.max(healedAt, plan.troubleMs) + HEALED_WITHIN_MS
    await world.play(
      () => violation !== undefined || isDone() || isLate() || world.steps > MOST_STEPS,
      Number.POSITIVE_INFINITY,
    )
    if (!isDone()) {
      const open = ledgers.filter((ledger) => !ledger.isDone).map((ledger) => `${ledger.plan.id}: ${ledger.open}`)
      fail(`the backlog did not reach zero: ${open.join('; ')}`)
    }
  } finally {
    process.off('unhandledRejection', onRejection)
    restoreRandom()
  }
  return { seed, steps: world.steps, violation }
}

/** The code under test jitters its delays by `Math.random`. */
function takeRandom(random: Random): () => void {
  const original = Math.random
  Math.random = () => random.next()
  return () => {
    Math.random = original
  }
}
