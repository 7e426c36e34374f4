/**
 * What this process knows of destinations that are not well or have limits, and what it tells the others. The database
 * has the truth; here is what was last heard, so that healthy destinations cost nothing.
 */
import { type Database, recordAudit } from '../postgres/index.ts'
import type { Clock, Logger } from '../runtime/index.ts'
import { adviceOf } from '../subscriptions/index.ts'
import { letRest, noteFailure, noteSuccess } from './destination-statements.ts'
import { isDestinationFault } from './failure.ts'
import { ITSELF, pauseIfWorking } from './pause-statements.ts'
import { nudgeWorkers, type WorkerNews } from './worker-statements.ts'

/** So often at most the others are told. */
const TELL_EVERY_MS = 1_000

export interface Attempted {
  readonly kind: string
  readonly name: string
  readonly destination: string
}

export interface Trouble {
  /** Only claims keep its limits, or it is better left alone now: what goes there becomes a row. */
  isGuarded(destination: string): boolean
  /** Nothing goes there for a while: its circuit is open, it asked to be left alone, or it is paused. */
  isResting(destination: string): boolean
  /** What the database says of all destinations, as asked at this time. */
  learn(news: Pick<WorkerNews, 'troubled' | 'limited' | 'resting'>, askedAt: number): void
  /** It failed; whose fault that was decides what follows for others that go there. */
  blame(attempted: Attempted, error: unknown): Promise<void>
  /** It answered. */
  forgive(destination: string): void
}

export function createTrouble({
  database,
  clock,
  logger,
  onPause,
  onTrouble,
}: {
  database: Database
  clock: Clock
  logger: Logger
  /** A name was paused by what its destination said. */
  onPause: () => void
  /** A destination is only probed, or rests. */
  onTrouble: (destination: string) => void
}): Trouble {
  const troubled = new Set<string>()
  let limited = new Set<string>()
  let resting = new Set<string>()
  /** What was found out here, and when: news that were asked for before do not know of it. */
  const foundOut = new Map<string, number>()
  let isTelling = false
  let toldAt = Number.NEGATIVE_INFINITY

  function forgive(destination: string): void {
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
    if (!isDestinationFault(error)) return forgive(destination)
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
    isGuarded: (destination) => destination !== '' && (limited.has(destination) || resting.has(destination)),
    isResting: (destination) => resting.has(destination),
    learn(news, askedAt) {
      for (const destination of news.troubled) troubled.add(destination)
      for (const [destination, at] of foundOut) if (at < askedAt) foundOut.delete(destination)
      limited = new Set(news.limited)
      resting = new Set([...news.resting, ...foundOut.keys()])
    },
    forgive,
    async blame(attempted, error) {
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
