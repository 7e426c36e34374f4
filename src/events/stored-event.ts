import {
  AftercommitEvent,
  CHANGES,
  type Change,
  type Changes,
  type EventFields,
  METADATA,
  PAYLOAD,
  PREVIOUS,
} from './event.ts'
import { parseJson } from './json-parse.ts'
import { stringifyJson } from './json-write.ts'
import { type EventMetadata, metadataFromStored, metadataToStored, type StoredMetadata } from './metadata.ts'
import { setOwn } from './own-property.ts'
import { Undecodable } from './undecodable.ts'

/** An event as it is stored: what is kept as JSON is text. */
export interface StoredFields extends Omit<EventFields, 'payload' | 'changes' | 'previous' | 'metadata'> {
  /** `Undecodable` where the content was not loaded. */
  readonly payload: string | Undecodable | null
  readonly changes: string | null
  readonly previous: string | null
  readonly metadata: string
  /** How long its transaction had run when it was written; absent where that is not known, or where the metadata says it. */
  readonly durationMs?: number | undefined
}

type Image = Readonly<Record<string, unknown>>

/**
 * An event over the text it is stored as. A part is read when somebody looks at it, so what nobody looks at costs
 * nothing; and text cannot be changed, so every reader can be given a copy of his own (`ownCopy`), which is cheaper than
 * to freeze one for all of them.
 *
 * What was read is private: looking at an event does not make it differ from another one over the same text.
 */
export class StoredEvent extends AftercommitEvent<string, unknown> {
  #payload: unknown
  #changes: Changes | null | undefined
  #previous: Image | null | undefined
  #metadata: EventMetadata | undefined
  readonly #durationMs: number | undefined

  constructor(fields: StoredFields) {
    super(fields as unknown as EventFields)
    this.#durationMs = fields.durationMs
  }

  override get payload(): unknown {
    if (this.#payload === undefined) this.#payload = readJson(this[PAYLOAD] as string | Undecodable | null)
    return this.#payload
  }

  override get changes(): Changes | null {
    if (this.#changes === undefined) this.#changes = this.#readChanges()
    return this.#changes
  }

  override get previous(): Image | null {
    if (this.#previous === undefined) this.#previous = this.#readPrevious()
    return this.#previous
  }

  override get metadata(): EventMetadata {
    this.#metadata ??= this.#readMetadata()
    return this.#metadata
  }

  #readMetadata(): EventMetadata {
    const stored = readJson(this[METADATA] as string) as StoredMetadata
    const lasted = this.#durationMs
    return metadataFromStored(
      lasted === undefined || stored instanceof Undecodable ? stored : { duration_ms: lasted, ...stored },
    )
  }

  #readChanges(): Changes | null {
    const text = this[CHANGES] as string | null
    const { kind } = this
    if (text !== null || (kind !== 'created' && kind !== 'deleted')) return readJson(text) as Changes | null
    const row = this.#capturedRow()
    return row && changesOfRow(row, kind)
  }

  #readPrevious(): Image | null {
    const text = this[PREVIOUS] as string | null
    return text !== null || this.kind !== 'deleted' ? (readJson(text) as Image | null) : this.#capturedRow()
  }

  /** Of a created or deleted row that was captured, `changes` and `previous` are not stored: they follow from the payload. */
  #capturedRow(): Image | null {
    if (this.metadata.captured_from === undefined) return null
    const row = readJson(this[PAYLOAD] as string | Undecodable | null)
    return typeof row === 'object' && row !== null && !Array.isArray(row) && !(row instanceof Undecodable)
      ? (row as Image)
      : null
  }

  /** Over the same text, with dates of its own: those can be changed too. */
  copy(): StoredEvent {
    return new StoredEvent({
      id: this.id,
      type: this.type,
      position: this.position,
      aggregateType: this.aggregateType,
      aggregateId: this.aggregateId,
      version: this.version,
      tenant: this.tenant,
      payload: this[PAYLOAD] as string | Undecodable | null,
      changes: this[CHANGES] as string | null,
      previous: this[PREVIOUS] as string | null,
      metadata: this[METADATA] as string,
      occurredAt: new Date(this.occurredAt.getTime()),
      recordedAt: new Date(this.recordedAt.getTime()),
      durationMs: this.#durationMs,
    })
  }

  /**
   * Why a part that was stored cannot be read; undefined when all can. Postgres wrote the text, so it is JSON; the one thing
   * that can be wrong is that it nests too deep, and short text cannot: that is known without reading it.
   */
  get unreadable(): Undecodable | undefined {
    const payload = this[PAYLOAD] as string | Undecodable | null
    if (payload instanceof Undecodable) return payload
    if (isLong(payload) && this.payload instanceof Undecodable) return this.payload
    for (const part of [this[CHANGES], this[PREVIOUS], this[METADATA]] as (string | null)[]) {
      const read = isLong(part) ? readJson(part) : undefined
      if (read instanceof Undecodable) return read
    }
    return undefined
  }
}

function isLong(text: string | null): text is string {
  return text !== null && text.length > TOO_SHORT_TO_BE_DEEP
}

function changesOfRow(row: Image, kind: 'created' | 'deleted'): Changes {
  const changes: Record<string, Change> = {}
  for (const [name, value] of Object.entries(row)) {
    if (value !== null)
      setOwn(changes, name, kind === 'created' ? { old: null, new: value } : { old: value, new: null })
  }
  return changes
}

/** A level takes two characters, and a thousand levels are read. */
const TOO_SHORT_TO_BE_DEEP = 2_000

/** The same event for one more reader, who may do with it what he likes. One that was not stored is given as it is. */
export function ownCopy<E extends AftercommitEvent>(event: E): E
export function ownCopy(event: AftercommitEvent): AftercommitEvent {
  return event instanceof StoredEvent ? event.copy() : event
}

export function isUndecodable(event: AftercommitEvent): boolean {
  return whyUndecodable(event) !== undefined
}

/** The part of an event that was stored and cannot be read, with the reason. */
export function whyUndecodable(event: AftercommitEvent): Undecodable | undefined {
  if (event instanceof StoredEvent) return event.unreadable
  return event.payload instanceof Undecodable ? event.payload : undefined
}

/** An event that came in one piece, as if it had been read from the log. */
export function toStoredEvent(event: AftercommitEvent): StoredEvent {
  const write = (part: unknown, name: string) => (part === null ? null : stringifyJson(part, { ...NO_LIMITS, name }))
  const { id, type, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt } = event
  return new StoredEvent({
    ...{ id, type, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt },
    payload: write(event.payload, 'payload'),
    changes: write(event.changes, 'changes'),
    previous: write(event.previous, 'previous'),
    metadata: stringifyJson(metadataToStored(event.metadata), { ...NO_LIMITS, name: 'metadata' }),
  })
}

const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000 }

function readJson(text: string | Undecodable | null): unknown {
  if (text === null || text instanceof Undecodable) return text
  try {
    return parseJson(text)
  } catch (error) {
    return new Undecodable(error instanceof Error ? error.message : 'The JSON text cannot be read.', text)
  }
}
