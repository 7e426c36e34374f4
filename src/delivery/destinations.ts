/**
 * May this start now? Answered for first attempts and for rows, from what this process last heard: pauses, limits, circuits,
 * rests, and calls that hang. The database has the truth, so healthy destinations cost nothing here. The health of a
 * destination is recorded here too, and other processes are told.
 */
import { type Database, recordAudit } from '../postgres/index.ts'
import type { Clock, Logger } from '../runtime/index.ts'
import { adviceOf } from '../subscriptions/index.ts'
import { letRest, noteFailure, noteSuccess } from './destination-statements.ts'
import { isDestinationFault } from './failure.ts'
import { type InFlight, shareOf } from './in-flight.ts'
import type { Lease } from './lease.ts'
import { ITSELF, pauseIfWorking } from './pause-statements.ts'
import { nudgeWorkers, type WorkerNews } from './worker-statements.ts'

/** So often at most the others are told. */
const TELL_EVERY_MS = 1_000

export interface Attempted {
  readonly kind: string
  readonly name: string
  readonly destination: string
}

export interface Destinations {
  /**
   * Why a first attempt must become a row now. `unknown`: without a lease no news of pauses arrives. `guarded`: only claims keep
   * limits, probe a circuit and wait for the end of a rest.
   */
  obstacle(one: Attempted): 'unknown' | 'paused' | 'guarded' | 'hanging' | undefined
  /** Asked for rows: their claim has kept everything else. */
  isPaused(one: Attempted): boolean
  /** Nothing goes there for a while: its circuit is open, it asked to be left alone, or it is paused. */
  isResting(destination: string): boolean
  /** What the database says of all destinations, as asked at this time. */
  learn(news: Pick<WorkerNews, 'troubled' | 'limited' | 'resting'>, askedAt: number): void
  /** An attempt failed; whose fault that was decides what follows for others that go there. */
  recordFailure(attempted: Attempted, error: unknown): Promise<void>
  /** The destination answered. */
  recordSuccess(destination: string): void
}

export interface DestinationsParts {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly lease: Pick<Lease, 'isInformed' | 'isPaused'>
  readonly inFlight: Pick<InFlight, 'isHanging'>
  /** A name was paused by what its destination said. */
  readonly onPause: () => void
  /** A destination is only probed, or rests. */
  readonly onTrouble: (destination: string) => void
}

export function createDestinations(parts: DestinationsParts): Destinations {
  const { database, clock, logger, lease, inFlight, onPause, onTrouble } = parts
  const troubled = new Set<string>()
  let limited = new Set<string>()
  let resting = new Set<string>()
  /** What was found out here, and when: news that were asked for before do not know of it. */
  const foundOut = new Map<string, number>()
  let isTelling = false
  let toldAt = Number.NEGATIVE_INFINITY

  function recordSuccess(destination: string): void {
    if (destination === '' || !troubled.delete(destination)) return
    // Said again by the next success, should this be lost.
    noteSuccess(database.control, destination).then(
      (wasOpen) => wasOpen && tellOthers(),
      () => troubled.add(destination),
    )
  }

  /** Many things at once are told together. Where it is lost, they learn it with their next renewal. */
  function tellOthers(): void {
    if (isTelling) return
    isTelling = true
    clock.setTimer(Math.max(0, toldAt + TELL_EVERY_MS - clock.monotonic()), () => {
      isTelling = false
      toldAt = clock.monotonic()
      nudgeWorkers(database.control, database.schemaName.channel).catch(() => {})
    })
  }

  async function tell({ kind, name, destination }: Attempted, error: unknown): Promise<void> {
    const { retryAfterMs, gone } = adviceOf(error)
    if (gone === true) {
      const by = { who: ITSELF, reason: 'its destination said that it is gone' }
      const isFirst = await database.control.transaction(async (tx) => {
        if (!(await pauseIfWorking(tx, { kind, name, ...by }))) return false
        await recordAudit(tx, { ...by, what: 'delivery.pause', target: `${kind} ${name}` })
        return true
      })
      if (isFirst) {
        logger.error({ kind, name, destination }, 'paused: its destination said that it is gone for good')
        tellOthers()
      }
      onPause()
    }
    if (destination === '') return
    if (!isDestinationFault(error)) return recordSuccess(destination)
    troubled.add(destination)
    if (retryAfterMs !== undefined) await letRest(database.control, destination, retryAfterMs)
    const isOpen = await noteFailure(database.control, destination)
    if (!isOpen && retryAfterMs === undefined) return
    if (!resting.has(destination)) {
      tellOthers()
      if (isOpen)
        logger.warn({ destination }, 'circuit open: the destination fails, so it is only probed until it answers')
    }
    resting.add(destination)
    foundOut.set(destination, clock.monotonic())
    onTrouble(destination)
  }

  return {
    obstacle({ kind, name, destination }) {
      if (!lease.isInformed) return 'unknown'
      if (lease.isPaused(kind, name, destination)) return 'paused'
      if (destination !== '' && (limited.has(destination) || resting.has(destination))) return 'guarded'
      return inFlight.isHanging(shareOf(destination, name)) ? 'hanging' : undefined
    },
    isPaused: ({ kind, name, destination }) => lease.isPaused(kind, name, destination),
    isResting: (destination) => resting.has(destination),
    learn(news, askedAt) {
      for (const destination of news.troubled) troubled.add(destination)
      for (const [destination, at] of foundOut) if (at < askedAt) foundOut.delete(destination)
      limited = new Set(news.limited)
      resting = new Set([...news.resting, ...foundOut.keys()])
    },
    recordSuccess,
    async recordFailure(attempted, error) {
      // Nothing was sent, so nothing is known of the destination.
      if (adviceOf(error).local === true) return
      const { kind, name, destination } = attempted
      // Said again by the next failure, should this be lost: the attempt itself must not depend on it.
      await tell(attempted, error).catch((fault) => {
        logger.warn({ err: fault, kind, name, destination }, 'what a failure says of its destination was not written')
      })
    },
  }
}
