/** One batch of a relay, for tests and for places where nothing runs for long. */
import { parkEvents, selectParkedKeys } from '../../dead-letters/index.ts'
import { AftercommitError } from '../../errors.ts'
import type { AnyEvent } from '../../log/index.ts'
import type { Database } from '../../postgres/index.ts'
import type { Clock } from '../../runtime/index.ts'
import type { Definition } from '../definition.ts'
import { type Lease, releaseLease, takeLeases } from '../lease-statements.ts'
import { placeDefinition } from '../placing.ts'
import { Progress } from '../progress.ts'
import { saveCheckpoint } from '../statements.ts'
import { callSink } from './call-sink.ts'
import type { Sink, SinkMessage } from './sink.ts'
import { insertBatch } from './statements.ts'

export interface OnceParts {
  readonly database: Database
  readonly clock: Clock
  readonly process: string
  readonly sink: Sink
  readonly timeoutMs: number
  readonly toMessage: (event: AnyEvent) => SinkMessage
  /** Final events above a position that a definition matches, in order. */
  readonly read: (definition: Definition, after: bigint, limit: number) => Promise<AnyEvent[]>
}

/**
 * Publishes one batch and answers how many events it had: 0 when there is nothing to do or somebody else runs the relay.
 * The lease is taken and given back in one transaction, which is open while the sink is called: nobody sees it taken, and
 * whatever fails leaves everything as it was.
 */
export async function publishOnce(definition: Definition, parts: OnceParts): Promise<number> {
  const { database } = parts
  const { generation } = await placeDefinition(database, definition)
  return database.transaction(async (tx) => {
    const wanted = { id: definition.id, generation }
    // A name that is no lease of a process: under that of this process it would take the subscription from its own run.
    const [lease] = await takeLeases(tx, `${parts.process}:once`, [wanted], { force: false, former: [] })
    if (lease === undefined) return 0
    if (lease.keptFrom > lease.position + 1n) throw historyLost(definition.id)
    if (lease.forkedAt !== null && lease.position > lease.forkedAt) throw historyForked(definition.id, lease.forkedAt)
    const progress = new Progress(lease.position, lease.done)
    const events = await readUnfinished(definition, parts, lease, progress)
    const parkedKeys = new Set(await selectParkedKeys(tx, definition.id))
    const isParked = (event: AnyEvent) => parkedKeys.has(definition.keyOf(event))
    const parked = events.filter(isParked).map((event) => ({ event, key: definition.keyOf(event) }))
    const free = events.filter((event) => !isParked(event))
    for (const { position } of events) progress.take(position)
    const checkpoint = progress.checkpoint(events)
    if (parked.length > 0) await parkEvents(tx, lease, checkpoint, parked)
    if (free.length > 0) {
      await callSink(parts, free.map(parts.toMessage), new AbortController().signal)
      await insertBatch(
        tx,
        definition.id,
        free.map(({ position }) => position),
      )
    }
    if (events.length > 0) await saveCheckpoint(tx, lease, checkpoint)
    await releaseLease(tx, lease, { clean: true, channel: null })
    return free.length
  })
}

/** A page that an earlier owner finished already is passed. */
async function readUnfinished(
  definition: Definition,
  parts: OnceParts,
  lease: Lease,
  progress: Progress,
): Promise<AnyEvent[]> {
  for (let after = lease.position; ; ) {
    const page = await parts.read(definition, after, definition.batchSize)
    const unfinished = page.filter(({ position }) => !progress.wasFinished(position))
    if (unfinished.length > 0 || page.length < definition.batchSize) return unfinished
    after = page.at(-1)!.position
    progress.pass(after)
  }
}

function historyForked(relay: string, after: bigint): AftercommitError {
  return new AftercommitError(
    'HISTORY_FORKED',
    `History forked after position ${after}, and relay "${relay}" had published beyond it, so nothing was published. Seek to go on.`,
  )
}

function historyLost(relay: string): AftercommitError {
  return new AftercommitError(
    'HISTORY_LOST',
    `Events that relay "${relay}" had not published were dropped by retention, so nothing was published. Seek to go on.`,
  )
}
