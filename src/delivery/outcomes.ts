/** What follows the end of an attempt: done, tried again, or a dead letter. The ruling is the same with a row and without. */
import { type Burial, buryDelivery, copyEvent, type ErrorRecord, toErrorRecord } from '../dead-letters/index.ts'
import { stringifyJson } from '../events/index.ts'
import { classify, type Database } from '../postgres/index.ts'
import { type Logger, reconnectDelay, type ThrottledLog } from '../runtime/index.ts'
import { adviceOf, afterFailure, type FaultStreak, NotNow, type Verdict } from '../subscriptions/index.ts'
import type { CountAttempt } from './attempt-count.ts'
import type { Work } from './delivery.ts'
import type { Destinations } from './destinations.ts'
import { decideOutcome } from './failure.ts'
import type { OutcomeWriter } from './outcome-writer.ts'
import type { Run } from './run.ts'
import { type Claim, completeDeliveries } from './statements.ts'
import type { Streaks } from './streaks.ts'

export interface OutcomeParts {
  readonly database: Database
  readonly logger: Logger
  /** For failures: the first of a kind at once, then one line a minute with their number. */
  readonly logRepeatedly: ThrottledLog
  readonly writer: OutcomeWriter
  readonly destinations: Pick<Destinations, 'obstacle' | 'recordFailure' | 'recordSuccess'>
  readonly streaks: Streaks
  readonly storeStacks: boolean
  readonly count: CountAttempt
  /** Whether something may wait for the row to go. */
  readonly isAwaited: (claim: Claim) => boolean
}

export function succeed(parts: OutcomeParts, run: Run): void {
  if (run.lost) return
  run.ended = true
  parts.streaks.put(run.delivery.id, undefined)
  parts.count(run.work.kind, 'success')
  if (!run.completed) {
    if (parts.isAwaited(run.claim)) parts.writer.done(run.claim)
    else parts.writer.linger(run.claim)
  }
  parts.destinations.recordSuccess(run.delivery.destination)
}

/** An attempt that failed. */
export interface Failure {
  readonly work: Work
  readonly destination: string
  /** Counts from 1. */
  readonly attempt: number
  readonly streak?: FaultStreak | undefined
  /** See `FailedAttempt`. */
  readonly byWork?: boolean
  /** For log lines. */
  readonly fields: Record<string, unknown>
}

/** Decides what follows a failure, and records what it says of its destination. */
export async function rule(parts: OutcomeParts, failure: Failure, error: unknown): Promise<Verdict> {
  const { work, destination } = failure
  await parts.destinations.recordFailure({ kind: work.kind, name: work.name, destination }, error)
  const verdict = decideOutcome({ ...failure, error }, work.retry)
  if (verdict.kind === 'retry' && !(error instanceof NotNow)) parts.count(work.kind, 'retry')
  return verdict
}

/** The work is given up. */
export function tellDead(parts: OutcomeParts, failure: Failure, error: unknown): void {
  parts.count(failure.work.kind, 'dead')
  parts.logger.error(
    { ...fieldsOf(failure), err: error },
    failure.work.discards ? 'delivery was given up' : 'delivery became a dead letter',
  )
}

export async function fail(parts: OutcomeParts, run: Run, error: unknown): Promise<void> {
  if (run.lost) return
  run.ended = true
  const { id } = run.delivery
  const failure = { ...toFailure(run), streak: parts.streaks.get(id), byWork: run.fault !== error }
  const verdict = await rule(parts, failure, error)
  if (!(error instanceof NotNow)) parts.streaks.put(id, afterFailure(failure.streak, verdict, parts.database.commits))
  if (verdict.kind === 'dead') return bury(parts, run, error)
  if (!(error instanceof NotNow)) {
    parts.logRepeatedly(
      'warn',
      `retry ${run.work.name} ${kindOf(error)}`,
      { ...fieldsOf(failure), delay_ms: verdict.delayMs, err: error },
      retryLine(verdict.counts, adviceOf(error).local === true, failure.attempt, run.work.retry.maxAttempts),
    )
  }
  parts.writer.failed({
    ...run.claim,
    delayMs: verdict.delayMs,
    error: toStoredError(parts, error),
    counts: verdict.counts,
  })
}

function retryLine(counts: boolean, isLocal: boolean, attempt: number, most: number): string {
  if (counts) return `attempt ${attempt} of ${most} failed; it is tried again`
  const fault = isLocal ? 'this host could not make an attempt' : 'a fault of the database ended an attempt'
  return `${fault}; the attempt does not count and is made again`
}

/** What tells failures of one name apart in the log: the code, else the name of the class. */
function kindOf(error: unknown): string {
  const { name, code } = toErrorRecord(error)
  return code ?? name
}

/**
 * Makes it a dead letter. Where that fails for good, through a mistake of its owner or because the database stays away,
 * it is tried once more later: it must neither be lost nor stay claimed.
 */
export async function bury(parts: OutcomeParts, run: Run, error: unknown): Promise<void> {
  for (let attempt = 1; !run.lost; attempt++) {
    try {
      return await writeLetter(parts, run, error)
    } catch (fault) {
      parts.logger.error(
        { ...fieldsOf(toFailure(run)), err: fault },
        'a dead letter was not written; it is tried again',
      )
      if (attempt === MOST_BURIALS || classify(fault) === 'permanent') {
        const stored = toStoredError(parts, error)
        return parts.writer.failed({ ...run.claim, delayMs: BURIAL_DELAY_MS, error: stored, counts: true })
      }
      await parts.database.clock.sleep(reconnectDelay(attempt))
    }
  }
}

const MOST_BURIALS = 5
const BURIAL_DELAY_MS = 60_000

/** The row goes and its letter comes in one transaction, with whatever its owner wants to hear in it. */
async function writeLetter(parts: OutcomeParts, run: Run, error: unknown): Promise<void> {
  const { delivery, work } = run
  const buried = await parts.database.transaction(
    async (tx) => {
      const gone = work.discards
        ? (await completeDeliveries(tx, [run.claim])).size === 1
        : await buryDelivery(tx, toBurial(parts, run, error))
      if (gone) await work.onDead?.(tx, delivery, error)
      return gone
    },
    { isolation: 'read committed' },
  )
  if (buried) tellDead(parts, toFailure(run), error)
}

function toBurial(parts: OutcomeParts, { claim, delivery, work }: Run, error: unknown): Burial {
  const event = work.toEvent(delivery)
  const told = work.toLetterError?.(error, delivery.attempt) ?? error
  return {
    claim,
    kind: delivery.kind,
    owner: delivery.owner,
    key: delivery.key ?? event.key,
    eventId: event.id,
    position: event.position,
    event: copyEvent(event),
    error: stringifyJson(toStoredError(parts, told)),
    attempts: delivery.attempt,
    freesUniqueKey: work.freesUniqueKey ?? false,
  }
}

function toStoredError({ storeStacks }: Pick<OutcomeParts, 'storeStacks'>, error: unknown): ErrorRecord {
  return toErrorRecord(error, { storeStacks })
}

function toFailure({ delivery, work }: Run): Failure {
  const { id, destination, attempt } = delivery
  return { work, destination, attempt, fields: { delivery: String(id) } }
}

function fieldsOf({ work, destination, attempt, fields }: Failure): Record<string, unknown> {
  return { ...fields, kind: work.kind, name: work.name, attempt, ...(destination !== '' && { destination }) }
}
