/** Pausing and resuming what workers begin: work of a name, or whatever goes to a destination. Holds for all processes. */
import { AftercommitError } from '../errors.ts'
import { type Database, type Queryable, recordAudit, type Transaction } from '../postgres/index.ts'
import type { DeliveryKind } from './delivery.ts'
import { destinationsMeant } from './destination-names.ts'
import { selectDestinationNames } from './inspect-work.ts'
import { countUnaware, pauseDestination, pauseName, resumeDestination, resumeName } from './pause-statements.ts'

export interface DeliveryAction {
  /** Who does it; for the record. */
  readonly who?: string | undefined
  readonly reason?: string | undefined
}

/**
 * Work of one name, or whatever goes to a destination: by its name, such as `webhook https://erp.example.com`, or by an
 * origin, which means every destination there.
 */
export type PauseTarget = { readonly kind: DeliveryKind; readonly name: string } | { readonly destination: string }

export interface Pausing {
  /**
   * Resolves when no worker anywhere begins another; what is under way goes on. Kept until it is resumed. Answers what was
   * paused: of an origin each destination. One that nothing has ever gone to is refused with UNKNOWN_DESTINATION.
   */
  pause(what: PauseTarget, action?: DeliveryAction): Promise<PauseTarget[]>
  /** Of a destination also the rest it asked for, and an open circuit is probed at once. Answers what was held back. */
  resume(what: PauseTarget, action?: DeliveryAction): Promise<PauseTarget[]>
  /** Names of what is meant by a name or an origin. Throws UNKNOWN_DESTINATION, with the nearest, where nothing is. */
  findDestinations(destination: string): Promise<string[]>
}

export interface PausingParts {
  readonly database: Database
  /** One transaction, made again where it lost a deadlock. */
  readonly change: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>
  /** Tells workers, wherever they run, that something changed. */
  readonly nudge: () => Promise<void>
}

const PATIENCE_MS = 10_000
const LOOK_MS = 25
const NUDGE_MS = 1_000

export function createPausing({ database, change, nudge }: PausingParts): Pausing {
  const { clock } = database

  /** Every live worker has said that it obeys; a new one obeys before it says anything. */
  async function untilObeyed(what: string, version: bigint): Promise<void> {
    const deadline = clock.monotonic() + PATIENCE_MS
    let nudgeAt = clock.monotonic()
    for (;;) {
      const unaware = await countUnaware(database.control, version)
      if (unaware === 0) return
      if (clock.monotonic() >= deadline) throw unconfirmed(what, unaware)
      if (clock.monotonic() >= nudgeAt) {
        nudgeAt = clock.monotonic() + NUDGE_MS
        await nudge()
      }
      await clock.sleep(LOOK_MS)
    }
  }

  return {
    async pause(what, { who = 'unknown', reason } = {}) {
      checkNamed(what)
      const { targets, version } = await change(async (tx) => {
        const mark = { who, reason: reason ?? null }
        let last = 0n
        const meant = await meantBy(tx, what)
        for (const target of meant) {
          await recordPause(tx, 'delivery.pause', target, who, reason)
          last = await ('name' in target
            ? pauseName(tx, { ...target, ...mark })
            : pauseDestination(tx, { ...target, ...mark }))
        }
        return { targets: meant, version: last }
      })
      await untilObeyed(targets.map(describe).join(', '), version)
      return targets
    },
    async resume(what, { who = 'unknown', reason } = {}) {
      checkNamed(what)
      const resumed = await change(async (tx) => {
        const held: PauseTarget[] = []
        for (const target of await meantBy(tx, what)) {
          const isHeld = await ('name' in target
            ? resumeName(tx, target.kind, target.name)
            : resumeDestination(tx, target.destination))
          if (!isHeld) continue
          await recordPause(tx, 'delivery.resume', target, who, reason)
          held.push(target)
        }
        return held
      })
      if (resumed.length > 0) await nudge()
      return resumed
    },
    findDestinations: (destination) => findDestinations(database, destination),
  }
}

async function meantBy(tx: Transaction, what: PauseTarget): Promise<PauseTarget[]> {
  if ('name' in what) return [{ kind: what.kind, name: what.name }]
  return (await findDestinations(tx, what.destination)).map((destination) => ({ destination }))
}

async function findDestinations(db: Queryable, destination: string): Promise<string[]> {
  return destinationsMeant(destination, await selectDestinationNames(db))
}

function recordPause(
  tx: Transaction,
  what: string,
  target: PauseTarget,
  who: string,
  reason: string | undefined,
): Promise<void> {
  return recordAudit(tx, { who, what, target: describe(target), ...(reason === undefined ? {} : { reason }) })
}

/** `effect mail`, or the destination. */
function describe(target: PauseTarget): string {
  return 'name' in target ? `${target.kind} ${target.name}` : target.destination
}

/** Work without a destination cannot be paused by it. */
function checkNamed(what: PauseTarget): void {
  const words = 'name' in what ? [what.kind, what.name] : [what.destination]
  if (words.every((word) => typeof word === 'string' && word !== '')) return
  throw new AftercommitError(
    'BAD_OPTION',
    'Name what is meant by its kind and name, or by a destination that is not empty; nothing was changed.',
  )
}

function unconfirmed(what: string, workers: number): AftercommitError {
  const have = workers === 1 ? '1 worker has' : `${workers} workers have`
  return new AftercommitError(
    'TIMED_OUT',
    `The pause of ${what} is written, but ${have} not confirmed it within ${PATIENCE_MS / 1_000} s and may still begin ` +
      'calls. One that is gone counts until its lease ends, a minute at most. Pause again to wait on.',
  )
}
