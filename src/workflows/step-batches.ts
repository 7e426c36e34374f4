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
import { createBatcher, createInTurnByKey } from '../runtime/index.ts'
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
}

/** Gives or throws the result of a step. `alone`: the step is made in a transaction of its own. */
type End = 'alone' | (() => Written | undefined)

/** Fewer would leave a processor of the server idle, more would leave little to share. */
const MOST_TRANSACTIONS = 2
const MOST_STEPS = 50
const MOST_ALONG = 100

export function createStepBatches(options: StepBatchesOptions) {
  const { database, prepare, alone, onCommitted, onFailed, takeAlong } = options
  const inTurn = createInTurnByKey()
  const add = createBatcher({
    write: together,
    take: ({ length }) => Math.min(length, MOST_STEPS),
    writers: MOST_TRANSACTIONS,
  })

  async function make(step: Step): Promise<Written | undefined> {
    const end = await add(step)
    return end === 'alone' ? alone(step.request, step.decide) : end()
  }

  /** One transaction for all of them. Never rejects: each step has an end of its own. */
  async function together(steps: readonly Step[]): Promise<readonly End[]> {
    const ends: End[] = steps.map(() => 'alone')
    const written: { n: number; step: Step; prepared: CommitRequest }[] = []
    let along: TakenAlong | undefined
    try {
      const load = loadManyStatement(
        database,
        steps.map(({ request }) => request),
      )
      const row = await database.twoTrips<{ answer: string }, { answer: string }>(load, async ({ answer }) => {
        const found = toFoundMany(answer)
        for (const [n, step] of steps.entries()) {
          const decided = decide(step, found[n])
          if ('end' in decided) ends[n] = decided.end
          else written.push({ n, step, prepared: await prepare(step.request, found[n]!, decided.write) })
        }
        if (written.length === 0) return undefined
        along = takeAlong(MOST_ALONG)
        const requests = written.map(({ prepared }) => prepared)
        return commitStatement(database, requests, along?.claims ?? [])
      })
      if (row !== undefined) {
        const { steps: committed, deleted } = toCommitted(row)
        along?.settled(deleted)
        for (const [at, { n, step, prepared }] of written.entries()) {
          onCommitted(step.request, prepared, committed[at]!)
          ends[n] = () => committed[at]!
        }
      }
    } catch (error) {
      const isUnknown = error instanceof OutcomeUnknownError
      along?.givenBack(isUnknown)
      for (const { prepared } of written) onFailed(prepared, isUnknown)
      if (!isUnknown) return steps.map(() => 'alone')
      for (const { n } of written) ends[n] = () => fail(error)
    }
    return ends
  }

  return {
    step: (request: StepRequest, decide: Decide) => inTurn(nameOf(request), () => make({ request, decide })),
  }
}

function decide(step: Step, found: Found | undefined): { readonly end: End } | { readonly write: StepWrite } {
  if (found === undefined) return { end: 'alone' }
  let write: StepWrite | undefined
  try {
    write = step.decide(found)
  } catch (error) {
    return { end: () => fail(error) }
  }
  if (write?.uniqueKey !== undefined) return { end: 'alone' }
  if (write !== undefined) return { write }
  return step.request.delivery ? { write: NOTHING } : { end: () => undefined }
}

function fail(error: unknown): never {
  throw error
}

function nameOf({ instance: { type, id } }: StepRequest): string {
  return aggregateKey(type, id)
}
