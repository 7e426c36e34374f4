/**
 * The log of the in-memory twin: what the database keeps and promises, in a few maps. Transactions take positions when
 * they emit and publish them when they commit, so a rollback leaves a hole and an open transaction holds back what was
 * numbered after it, exactly as in Postgres.
 */
import { isDeepStrictEqual } from 'node:util'
import { aggregateKey, parseJson, StoredEvent, type StoredFields, stringifyJson } from '../events/index.ts'
import { type AnyEvent, VersionConflictError } from '../log/index.ts'
import type { Parameter } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'

/** An event that was emitted and is not committed. */
export interface StagedEvent {
  /** Its version is final when it is committed: another transaction may come first. */
  readonly fields: Omit<StoredFields, 'version'> & { version: number | null }
  /** The stream it belongs to, when its aggregate is kept as one. */
  readonly stream: string | undefined
  readonly expected: number | undefined
  readonly chosen: boolean
}

/** What a transaction has emitted so far. */
export interface Staging {
  readonly events: StagedEvent[]
  /** The first position it took; everything from there on waits for it. */
  first: bigint | undefined
}

interface Place {
  readonly position: bigint
  readonly version: number | null
}

export class MemoryLog {
  /** Committed, in position order. */
  events: AnyEvent[] = []
  readonly #clock: Clock
  readonly #streamTypes: ReadonlySet<string>
  readonly #open = new Set<Staging>()
  readonly #chosen = new Map<string, StoredFields>()
  readonly #versions = new Map<string, number>()
  #lastPosition = 0n

  constructor(clock: Clock, streamTypes: readonly string[]) {
    this.#clock = clock
    this.#streamTypes = new Set(streamTypes)
  }

  /** Everything at or below is final. */
  get frontier(): bigint {
    let frontier = this.#lastPosition
    for (const { first } of this.#open) if (first !== undefined && first <= frontier) frontier = first - 1n
    return frontier
  }

  now(): Date {
    return this.#clock.now()
  }

  begin(): Staging {
    const staging: Staging = { events: [], first: undefined }
    this.#open.add(staging)
    return staging
  }

  /** Takes the parameters of the SQL function `append` and answers as it does: `position` or `position:version`. */
  append(staging: Staging, values: readonly Parameter[]): string {
    const [id, type, aggregateType, aggregateId, payload, metadata, occurredAt, extraText] = values as (string | null)[]
    const extra = extraText ? (parseJson(extraText) as Extra) : NOTHING_EXTRA
    const known = extra.chosen && this.#find(staging, id!)
    if (known) {
      const content = [
        type,
        aggregateType,
        aggregateId,
        extra.tenant ?? null,
        parseJson(payload!),
        extra.changes ?? null,
      ]
      if (!isDeepStrictEqual(content, contentOf(known))) {
        throw databaseError(
          'AC017',
          `The id "${id}" stands for another event, at position ${known.position}; nothing was emitted.`,
        )
      }
      return toAnswer(known)
    }
    const stream = this.#streamTypes.has(aggregateType!) ? aggregateKey(aggregateType!, aggregateId!) : undefined
    const version = stream === undefined ? null : this.#versionOf(staging, stream) + 1
    if (extra.expected !== undefined) {
      if (version === null) throw databaseError('AC002', 'The aggregate type is not declared as a stream.')
      if (version - 1 !== extra.expected) {
        const place = `${aggregateType}/${aggregateId}`
        throw databaseError('AC001', `Stream ${place} is at version ${version - 1}, not ${extra.expected}.`)
      }
    }
    const recordedAt = this.#clock.now()
    const fields = {
      id: id!,
      type: type!,
      position: ++this.#lastPosition,
      aggregateType: aggregateType!,
      aggregateId: aggregateId!,
      version,
      payload: payload!,
      changes: toText(extra.changes),
      previous: toText(extra.previous),
      tenant: extra.tenant ?? null,
      metadata: metadata!,
      occurredAt: occurredAt ? new Date(occurredAt) : recordedAt,
      recordedAt,
    }
    staging.first ??= fields.position
    staging.events.push({ fields, stream, expected: extra.expected, chosen: extra.chosen ?? false })
    return toAnswer(fields)
  }

  /** All of it or, when a stream has moved on since, none. */
  commit(staging: Staging): void {
    this.#open.delete(staging)
    const fresh = staging.events.filter(({ chosen, fields }) => !chosen || !this.#chosen.has(fields.id))
    this.#checkVersions(fresh)
    for (const { fields, stream, chosen } of fresh) {
      if (stream !== undefined) {
        fields.version = (this.#versions.get(stream) ?? 0) + 1
        this.#versions.set(stream, fields.version)
      }
      if (chosen) this.#chosen.set(fields.id, fields)
      this.#insert(new StoredEvent(fields))
    }
  }

  rollBack(staging: Staging): void {
    this.#open.delete(staging)
  }

  /** Forgets all history. Positions go on, so that no reader meets one twice. */
  clear(): void {
    this.events = []
    this.#chosen.clear()
    this.#versions.clear()
  }

  #find({ events }: Staging, id: string): StoredFields | undefined {
    return this.#chosen.get(id) ?? events.find(({ fields, chosen }) => chosen && fields.id === id)?.fields
  }

  #versionOf({ events }: Staging, stream: string): number {
    return (this.#versions.get(stream) ?? 0) + events.filter((event) => event.stream === stream).length
  }

  /** Another transaction may have committed to a stream since this one looked. */
  #checkVersions(events: readonly StagedEvent[]): void {
    const seen = new Map<string, number>()
    for (const { stream, expected, fields } of events) {
      if (stream === undefined) continue
      const found = seen.get(stream) ?? this.#versions.get(stream) ?? 0
      seen.set(stream, found + 1)
      if (expected === undefined || expected === found) continue
      const aggregate = { type: fields.aggregateType!, id: fields.aggregateId! }
      throw new VersionConflictError(aggregate, expected, found, undefined)
    }
  }

  #insert(event: AnyEvent): void {
    if ((this.events.at(-1)?.position ?? 0n) < event.position) {
      this.events.push(event)
      return
    }
    let at = this.events.length
    while (at > 0 && this.events[at - 1]!.position > event.position) at--
    this.events.splice(at, 0, event)
  }
}

/** What the last parameter of `append` holds. */
interface Extra {
  readonly tenant?: string
  readonly changes?: unknown
  readonly previous?: unknown
  readonly chosen?: boolean
  readonly expected?: number
}

const NOTHING_EXTRA: Extra = {}

/** Back to what a database would keep; it was checked on the way in. */
function toText(part: unknown): string | null {
  return part === undefined ? null : stringifyJson(part, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000 })
}

/** What makes a repetition of an id the same event, as `content_of` in SQL. */
function contentOf({ type, aggregateType, aggregateId, tenant, payload, changes }: StoredFields): unknown {
  const read = (text: unknown) => (typeof text === 'string' ? parseJson(text) : null)
  return [type, aggregateType, aggregateId, tenant, read(payload), read(changes)]
}

function toAnswer({ position, version }: Place): string {
  return version === null ? String(position) : `${position}:${version}`
}

/** As a driver would throw it: whoever emits puts our own words to it. */
function databaseError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
