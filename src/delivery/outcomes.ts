/** What follows the end of an attempt at a row: done, tried again, or a dead letter. */
import { copyEvent, type ErrorRecord, toErrorRecord } from '../dead-letters/index.ts'
import { stringifyJson } from '../events/index.ts'
import { classify, type Database } from '../postgres/index.ts'
import { type Logger, reconnectDelay, type ThrottledLog } from '../runtime/index.ts'
import { adviceOf, afterFailure, NotNow } from '../subscriptions/index.ts'
import type { CountAttempt } from './attempt-count.ts'
import { decideOutcome } from './failure.ts'
import { type Burial, buryDelivery } from './letter-statements.ts'
import type { Run } from './run.ts'
import type { Settler } from './settler.ts'
import { type Claim, completeDeliveries } from './statements.ts'
import type { Streaks } from './streaks.ts'
import type { Trouble } from './trouble.ts'

export interface OutcomeParts {
  readonly database: Database
  readonly logger: Logger
  /** For failures: the first of a kind at once, then one line a minute with their number. */
  readonly logRepeatedly: ThrottledLog
  readonly settler: Settler
  readonly trouble: Trouble
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
    if (parts.isAwaited(run.claim)) parts.settler.done(run.claim)
    else parts.settler.linger(run.claim)
  }
  parts.trouble.forgive(run.delivery.destination)
}

export async function fail(parts: OutcomeParts, run: Run, error: unknown): Promise<void> {
  if (run.lost) return
  run.ended = true
  const { delivery, work } = run
  const { id } = delivery
  await parts.trouble.blame(delivery, error)
  const failed = { error, attempt: delivery.attempt, streak: parts.streaks.get(id), byWork: run.fault !== error }
  const outcome = decideOutcome(failed, work.retry)
  if (!(error instanceof NotNow)) parts.streaks.put(id, afterFailure(failed.streak, outcome, parts.database.commits))
  if (outcome.kind === 'dead') return bury(parts, run, error)
  if (!(error instanceof NotNow)) {
    parts.count(work.kind, 'retry')
    parts.logRepeatedly(
      'warn',
      `retry ${work.name} ${kindOf(error)}`,
      { ...fieldsOf(run), delay_ms: outcome.delayMs, err: error },
      retryLine(outcome.counts, adviceOf(error).local === true, delivery.attempt, work.retry.maxAttempts),
    )
  }
  parts.settler.failed({
    ...run.claim,
    delayMs: outcome.delayMs,
    error: toStoredError(parts, error),
    counts: outcome.counts,
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
      parts.logger.error({ ...fieldsOf(run), err: fault }, 'a dead letter was not written; it is tried again')
      if (attempt === MOST_BURIALS || classify(fault) === 'permanent') {
        const stored = toStoredError(parts, error)
        return parts.settler.failed({ ...run.claim, delayMs: BURIAL_DELAY_MS, error: stored, counts: true })
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
  if (!buried) return
  parts.count(work.kind, 'dead')
  parts.logger.error(
    { ...fieldsOf(run), err: error },
    work.discards ? 'delivery was given up' : 'delivery became a dead letter',
  )
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

function fieldsOf({ delivery }: Run): Record<string, unknown> {
  return {
    delivery: String(delivery.id),
    kind: delivery.kind,
    name: delivery.name,
    attempt: delivery.attempt,
    ...(delivery.destination === '' ? {} : { destination: delivery.destination }),
  }
}
