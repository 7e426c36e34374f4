/**
 * Steps that are under way at the same time share a statement: while a few are under way, what comes meanwhile waits for the
 * next one and goes together, in one round trip and one commit. They are decided on what this process remembers, and the
 * statement writes each where the instance is still so (docs/decisions/0015). What can happen, failures first:
 *
 *   the answer is lost            the same steps are sent again: the ids of their events tell whether they were written
 *   anything else fails           nothing was written; each is made again by itself, and fails by itself
 *   the instance has gone on      the answer brings what happened since; the step is decided again on that, twice at most
 *   it is paused or holds events, a transaction has it, or a unique key is wanted   that step is made by itself, and waits
 *   `decide` throws or rejects    that step ends, once the statement has found that the instance was as remembered
 *   another step of the instance  one after the other, in the order they came
 */
import type { Claiming, TakenAlong } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { aggregateKey } from '../events/index.ts'
import { type Database, mayHaveHappened, OutcomeUnknownError } from '../postgres/index.ts'
import { retryUntil } from '../runtime/index.ts'
import {
  type CommitRequest,
  type Committed,
  type Tried,
  type TryAnswer,
  toTryAnswers,
  tryStatement,
} from './statements.ts'
import type { Found, KnownInstance, StepRequest, StepWrite, Written } from './store.ts'
import { createStoreClock } from './store-clock.ts'
import { NOTHING } from './to-write.ts'

export type Decide = (found: Found) => StepWrite | undefined

export interface StepBatchesOptions {
  readonly database: Database
  /** Everything about a commit but the transaction. */
  readonly prepare: (request: StepRequest, found: Found, write: StepWrite) => CommitRequest | Promise<CommitRequest>
  /** The step by itself, in a transaction that waits for its instance. */
  readonly alone: (request: StepRequest, decide: Decide) => Promise<Written | undefined>
  readonly onCommitted: (request: StepRequest, prepared: CommitRequest, committed: Committed) => void
  /** `isUnknown`: it may have been committed, or was, and its effects may be claimed. If not, nothing was. */
  readonly onFailed: (prepared: CommitRequest, isUnknown: boolean) => void
  readonly takeAlong: Claiming['takeAlong']
}

interface Step {
  readonly request: StepRequest
  readonly decide: Decide
  readonly resolve: (written: Written | undefined) => void
  readonly reject: (error: unknown) => void
  /** What the statement before found, and what was decided on it. */
  again?: Decided | undefined
  refusals: number
}

/** What came of `decide`: a write, nothing, or an error. Without an outcome nobody was asked, since nothing is known. */
interface Decided {
  readonly found: Found
  readonly outcome?: { readonly write: StepWrite | undefined } | { readonly error: unknown }
}

/** A step as it is sent. */
interface Sent {
  readonly step: Step
  readonly decided: Decided
  readonly tried: Tried
}

/** Fewer would leave a processor of the server idle, more would leave little to share. */
const MOST_STATEMENTS = 2
const MOST_STEPS = 50
const MOST_ALONG = 100
const MOST_REFUSALS = 2
/** How long a step whose answer was lost is sent again. */
const LONGEST_DOUBT_MS = 10_000

export function createStepBatches(options: StepBatchesOptions) {
  const { database, prepare, alone, onCommitted, onFailed, takeAlong } = options
  const clock = createStoreClock(database.clock)
  /** Of each instance at most one, which is in `behind` too. */
  const ready: Step[] = []
  /** What waits for the step of its instance that is ready or under way. */
  const behind = new Map<string, Step[]>()
  let statements = 0
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
    if (isGathering || statements === MOST_STATEMENTS) return
    isGathering = true
    const begin = () => {
      isGathering = false
      while (statements < MOST_STATEMENTS && ready.length > 0) void run(ready.splice(0, MOST_STEPS))
    }
    if (statements === 0) queueMicrotask(begin)
    else setImmediate(begin)
  }

  async function run(steps: readonly Step[]): Promise<void> {
    statements++
    const { left, refused } = await together(steps)
    statements--
    for (const step of steps) if (!left.includes(step) && !refused.includes(step)) ended(step)
    for (const step of left) void byItself(step)
    ready.unshift(...refused)
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

  /** Never rejects: each step hears how it ended, but those that are left to be made alone, and those refused. */
  async function together(steps: readonly Step[]): Promise<{ left: readonly Step[]; refused: readonly Step[] }> {
    const sent: Sent[] = []
    const left: Step[] = []
    let along: TakenAlong | undefined
    try {
      const nowMs = await currentMs()
      for (const step of steps) {
        const decided = step.again ?? decideOnMemory(step, nowMs)
        if (wantsKey(decided)) left.push(step)
        else sent.push(await toSent(step, decided))
      }
      if (sent.length === 0) return { left, refused: [] }
      along = takeAlong(MOST_ALONG)
      const { answers, deleted } = await send(sent, along?.claims)
      along?.settled(deleted)
      along = undefined
      const refused: Step[] = []
      for (const [n, one] of sent.entries()) {
        const how = hear(one, answers[n]!)
        if (how === 'alone') left.push(one.step)
        if (how === 'again') refused.push(one.step)
      }
      return { left, refused }
    } catch (error) {
      const isUnknown = mayHaveHappened(error)
      along?.givenBack(isUnknown)
      if (!isUnknown) for (const { tried } of sent) onFailed(tried, false)
      if (!isUnknown) return { left: steps, refused: [] }
      const notSent = steps.filter((step) => !sent.some((one) => one.step === step))
      return { left: [...notSent, ...(await findOut(sent, error))], refused: [] }
    }
  }

  /** The time of the database; asked for where it has not answered for a while. */
  async function currentMs(): Promise<number> {
    const known = clock.nowMs()
    if (known !== undefined) return known
    const { rows } = await database.query<{ ms: string }>(
      'select floor(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint::text as ms',
    )
    const ms = Number(rows[0]!.ms)
    clock.answered(ms)
    return ms
  }

  async function send(sent: readonly Sent[], ended: TakenAlong['claims'] = []) {
    const tries = sent.map(({ tried }) => tried)
    const { text, values } = tryStatement(database, tries, ended)
    const { rows } = await database.query<{ answer: string }>(text, values, { repeated: true })
    const answer = toTryAnswers(rows[0]!, tries.length)
    clock.answered(answer.clockMs)
    return answer
  }

  async function toSent(step: Step, decided: Decided): Promise<Sent> {
    const { request } = step
    const { found, outcome } = decided
    const write = outcome && 'write' in outcome ? outcome.write : undefined
    // An input that leads to nothing ends its delivery; one that failed does not.
    const isEnd = write === undefined && outcome !== undefined && 'write' in outcome && request.delivery !== undefined
    const prepared = write || isEnd ? await prepare(request, found, write ?? NOTHING) : lookOnly(request, found)
    const { snapshotVersion, inputId } = request
    const as = outcome === undefined ? 'ask' : undefined
    return { step, decided, tried: { ...prepared, position: found.position, snapshotVersion, inputId, as } }
  }

  /** Tells the step how it ended, or says how it goes on. */
  function hear({ step, decided, tried }: Sent, answer: TryAnswer): 'ended' | 'again' | 'alone' {
    const { request } = step
    if (answer === 'busy' || 'found' in answer) onFailed(tried, false)
    if (answer === 'busy') return 'alone'
    if ('found' in answer) return decideAgain(step, answer.found)
    if ('happened' in answer) {
      request.delivery?.settled()
      onFailed(tried, true)
      step.resolve({ position: answer.happened })
      return 'ended'
    }
    const { outcome } = decided
    if (outcome && 'error' in outcome) {
      step.reject(outcome.error)
      return 'ended'
    }
    const isWritten = outcome?.write !== undefined || request.delivery !== undefined
    if (isWritten) onCommitted(request, tried, answer.committed)
    step.resolve(isWritten ? answer.committed : undefined)
    return 'ended'
  }

  /** On what is stored. Where nothing follows from it, the step has ended. */
  function decideAgain(step: Step, found: Found): 'ended' | 'again' | 'alone' {
    const { request } = step
    step.refusals++
    if (step.refusals > MOST_REFUSALS || found.paused || found.holds || (found.recorded && request.delivery))
      return 'alone'
    const outcome = decide(step, notBefore(found, request.notBefore))
    if ('error' in outcome) {
      step.reject(outcome.error)
      return 'ended'
    }
    if (outcome.write === undefined && request.delivery === undefined) {
      step.resolve(undefined)
      return 'ended'
    }
    step.again = { found: notBefore(found, request.notBefore), outcome }
    return 'again'
  }

  /** The answer was lost. Answers the steps that have to be made alone: they were not written. */
  async function findOut(sent: readonly Sent[], cause: unknown): Promise<Step[]> {
    const hows = await Promise.all(
      sent.map((one) =>
        sendAgain(one).catch((error) => {
          onFailed(one.tried, true)
          one.step.reject(isNoAnswer(error) ? new OutcomeUnknownError(cause) : error)
          return 'ended'
        }),
      ),
    )
    return sent.filter((_, n) => hows[n] !== 'ended').map(({ step }) => step)
  }

  /** Each by itself and as it was: no version of an instance is written twice, and the ids of events tell whose it is. */
  async function sendAgain(one: Sent): Promise<'ended' | 'alone'> {
    const { step, tried } = one
    const { events, observation } = tried.write
    if (events.length === 0 && observation) throw new NoAnswerError()
    if (events.length === 0) {
      onFailed(tried, true)
      return 'alone'
    }
    const until = database.clock.monotonic() + LONGEST_DOUBT_MS
    const answer = await retryUntil(
      async () => {
        const { answers } = await send([{ ...one, tried: { ...tried, as: 'again' } }])
        // The server still works on it, or has not noticed yet that the connection is gone.
        if (answers[0] === 'busy') throw new NoAnswerError()
        return answers[0]!
      },
      {
        clock: database.clock,
        mayRetry: (error) => isNoAnswer(error) && !isStopped(error) && database.clock.monotonic() < until,
      },
    )
    if (hear(one, answer) === 'ended') return 'ended'
    step.again = undefined
    return 'alone'
  }

  return {
    step: (request: StepRequest, decide: Decide) =>
      new Promise<Written | undefined>((resolve, reject) => add({ request, decide, resolve, reject, refusals: 0 })),
  }
}

/** On what is remembered. An instance that nobody remembers is new, unless a delivery of its own brought the input. */
function decideOnMemory(step: Step, nowMs: number): Decided {
  const { request } = step
  const known = request.known()
  const found = notBefore(asRemembered(known, nowMs), request.notBefore)
  if (known?.isOver || (known === undefined && request.delivery)) return { found }
  return { found, outcome: decide(step, found) }
}

function decide({ decide: ask }: Step, found: Found): NonNullable<Decided['outcome']> {
  try {
    return { write: ask(found) }
  } catch (error) {
    return { error }
  }
}

function asRemembered(known: KnownInstance | undefined, nowMs: number): Found {
  return {
    now: new Date(Math.max(nowMs, known?.atMs ?? 0)),
    version: known?.version ?? 0,
    position: known?.position ?? 0n,
    generation: known?.generation ?? 1,
    completed: false,
    paused: false,
    holds: false,
    uniqueKey: known?.uniqueKey ?? null,
    snapshot: undefined,
    events: [],
    followsKnown: known !== undefined,
    recorded: undefined,
  }
}

function notBefore(found: Found, earliestMs = 0): Found {
  return found.now.getTime() >= earliestMs ? found : { ...found, now: new Date(earliestMs) }
}

function wantsKey({ outcome }: Decided): boolean {
  return outcome !== undefined && 'write' in outcome && outcome.write?.uniqueKey !== undefined
}

/** Nothing is written: the statement says whether the instance is as it was taken for. */
function lookOnly({ instance }: StepRequest, found: Found): CommitRequest {
  const lanes = { timers: 0, effects: [] }
  return {
    instance,
    found,
    write: NOTHING,
    lanes,
    strict: false,
    endsEffects: false,
    done: undefined,
    claim: undefined,
  }
}

class NoAnswerError extends Error {}

function isNoAnswer(error: unknown): boolean {
  return error instanceof NoAnswerError || error instanceof AftercommitError || mayHaveHappened(error)
}

function isStopped(error: unknown): boolean {
  return error instanceof AftercommitError && error.code === 'STOPPED'
}

function nameOf({ instance: { type, id } }: StepRequest): string {
  return aggregateKey(type, id)
}
