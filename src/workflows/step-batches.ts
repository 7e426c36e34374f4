/**
 * Steps that are under way at the same time share transactions: while a few are under way, what comes meanwhile waits for
 * the next one and goes together, in the same two round trips and one commit. What can happen, failures first:
 *
 *   the connection dies during COMMIT   nobody can know about any of them, and each is told so
 *   anything else fails                 nothing was written; each is made again by itself, and fails by itself
 *   an instance is somebody else's now  together nobody waits, so no two transactions wait for each other; that step is
 *   or a unique key is wanted           made by itself
 *   `decide` throws                     that step ends; the others go on
 *   another step of the same instance   one after the other, in the order they came
 */
import type { Claiming, TakenAlong } from '../delivery/index.ts'
import { aggregateKey } from '../events/index.ts'
import { type Database, OutcomeUnknownError } from '../postgres/index.ts'
import {
  type CommitRequest,
  type Committed,
  commitStatement,
  loadManyStatement,
  toCommitted,
  toFoundMany,
} from './statements.ts'
import type { Found, StepRequest, StepWrite, Written } from './store.ts'
import { NOTHING } from './to-write.ts'

export type Decide = (found: Found) => StepWrite | undefined

export interface StepBatchesOptions {
  readonly database: Database
  /** Everything about a commit but the transaction. */
  readonly prepare: (request: StepRequest, found: Found, write: StepWrite) => CommitRequest | Promise<CommitRequest>
  /** The step by itself; it waits for its instance. */
  readonly alone: (request: StepRequest, decide: Decide) => Promise<Written | undefined>
  readonly onCommitted: (request: StepRequest, prepared: CommitRequest, committed: Committed) => void
  /** `isUnknown`: whether it was committed cannot be known. If not, it was not. */
  readonly onFailed: (prepared: CommitRequest, isUnknown: boolean) => void
  readonly takeAlong: Claiming['takeAlong']
}

interface Step {
  readonly request: StepRequest
  readonly decide: Decide
  readonly resolve: (written: Written | undefined) => void
  readonly reject: (error: unknown) => void
}

/** Fewer would leave a processor of the server idle, more would leave little to share. */
const MOST_TRANSACTIONS = 2
const MOST_STEPS = 50
const MOST_ALONG = 100

export function createStepBatches(options: StepBatchesOptions) {
  const { database, prepare, alone, onCommitted, onFailed, takeAlong } = options
  /** Of each instance at most one, which is in `behind` too. */
  const ready: Step[] = []
  /** What waits for the step of its instance that is ready or under way. */
  const behind = new Map<string, Step[]>()
  let transactions = 0
  let isGathering = false

  function add(step: Step): void {
    const name = nameOf(step.request)
    const others = behind.get(name)
    if (others) {
      others.push(step)
      return
    }
    behind.set(name, [])
    ready.push(step)
    gather()
  }

  /** What is asked for together goes together: what comes with this turn, and while others are under way with the next. */
  function gather(): void {
    if (isGathering || transactions === MOST_TRANSACTIONS) return
    isGathering = true
    const begin = () => {
      isGathering = false
      while (transactions < MOST_TRANSACTIONS && ready.length > 0) void run(ready.splice(0, MOST_STEPS))
    }
    if (transactions === 0) queueMicrotask(begin)
    else setImmediate(begin)
  }

  async function run(steps: readonly Step[]): Promise<void> {
    transactions++
    const left = await together(steps)
    transactions--
    for (const step of steps) if (!left.includes(step)) ended(step)
    for (const step of left) void byItself(step)
    gather()
  }

  async function byItself(step: Step): Promise<void> {
    await alone(step.request, step.decide).then(step.resolve, step.reject)
    ended(step)
  }

  /** The next of its instance may begin. */
  function ended({ request }: Step): void {
    const name = nameOf(request)
    const next = behind.get(name)!.shift()
    if (next === undefined) {
      behind.delete(name)
      return
    }
    ready.push(next)
    gather()
  }

  /** Answers those that have to be made by themselves. Never rejects: each step is told how it ended. */
  async function together(steps: readonly Step[]): Promise<readonly Step[]> {
    const left: Step[] = []
    const ends: (() => void)[] = []
    const written: { step: Step; prepared: CommitRequest }[] = []
    let along: TakenAlong | undefined
    try {
      const load = loadManyStatement(
        database,
        steps.map(({ request }) => request),
      )
      const row = await database.twoTrips<{ answer: string }, { answer: string }>(load, async ({ answer }) => {
        const found = toFoundMany(answer)
        for (const [n, step] of steps.entries()) {
          const write = decided(step, found[n], { left, ends })
          if (write) written.push({ step, prepared: await prepare(step.request, found[n]!, write) })
        }
        if (written.length === 0) return undefined
        along = takeAlong(MOST_ALONG)
        const requests = written.map(({ prepared }) => prepared)
        return commitStatement(database, requests, along?.claims ?? [])
      })
      if (row !== undefined) {
        const { steps: committed, deleted } = toCommitted(row)
        along?.settled(deleted)
        for (const [n, { step, prepared }] of written.entries()) {
          onCommitted(step.request, prepared, committed[n]!)
          step.resolve(committed[n]!)
        }
      }
    } catch (error) {
      const isUnknown = error instanceof OutcomeUnknownError
      along?.givenBack(isUnknown)
      for (const { prepared } of written) onFailed(prepared, isUnknown)
      if (!isUnknown) return steps
      for (const { step } of written) step.reject(error)
    }
    for (const end of ends) end()
    return left
  }

  return {
    step: (request: StepRequest, decide: Decide) =>
      new Promise<Written | undefined>((resolve, reject) => add({ request, decide, resolve, reject })),
  }
}

/** Undefined: there is nothing to write for this one here. */
function decided(
  step: Step,
  found: Found | undefined,
  { left, ends }: { left: Step[]; ends: (() => void)[] },
): StepWrite | undefined {
  if (found === undefined) {
    left.push(step)
    return undefined
  }
  let write: StepWrite | undefined
  try {
    write = step.decide(found)
  } catch (error) {
    ends.push(() => step.reject(error))
    return undefined
  }
  if (write?.uniqueKey !== undefined) {
    left.push(step)
    return undefined
  }
  if (write !== undefined) return write
  if (step.request.delivery) return NOTHING
  ends.push(() => step.resolve(undefined))
  return undefined
}

function nameOf({ instance: { type, id } }: StepRequest): string {
  return aggregateKey(type, id)
}
