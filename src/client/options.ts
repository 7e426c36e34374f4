/** What `connect` takes and gives. Nothing here is imported from the server's half, not even a type. */
import type { TokenStorage } from './progress.ts'

/** An event as the feed sends it: CloudEvents 1.0, unless the server projects something else. */
export interface LiveEvent<Type extends string = string, Data = unknown> {
  readonly specversion: '1.0'
  readonly id: string
  readonly source: string
  readonly type: Type
  readonly subject?: string
  readonly time?: string
  readonly data: Data
  readonly [extension: string]: unknown
}

/** What `defineEvents` gives, as far as types go: `connect<typeof events>(…)` with `import type { events }`. */
export interface Catalogue {
  readonly schemas: object
}

/** The union of the events of a catalogue; any event without one. */
export type EventIn<C extends Catalogue> = [keyof C['schemas'] & string] extends [never]
  ? LiveEvent
  : { [Name in keyof C['schemas'] & string]: LiveEvent<Name, DataOf<C['schemas'][Name]>> }[keyof C['schemas'] & string]

type DataOf<Entry> = Entry extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Entry extends { readonly schema: infer Schema }
    ? DataOf<Schema>
    : unknown

export type ConnectionState = 'connecting' | 'open' | 'waiting' | 'closed'

export interface ConnectOptions<C extends Catalogue = Catalogue> {
  readonly url: string | URL
  /** Patterns such as `order.*`; everything the feed offers unless told. */
  readonly types?: readonly string[] | undefined
  readonly aggregate?: { readonly type: string; readonly id?: string | undefined } | undefined
  /** Sent with every request. A function is asked for each connection, so that a token can be renewed. */
  readonly headers?: HeaderValues | (() => HeaderValues | Promise<HeaderValues>) | undefined
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined
  /** Resume after this token; what `storage` has kept unless told, else from now on. */
  readonly from?: string | undefined
  /**
   * Called for one event after the other; a promise is waited for. One that throws gets the event again, after a pause.
   * Without it, events are read with `for await`.
   */
  readonly onEvent?: ((event: EventIn<C>, token: string | undefined) => unknown) | undefined
  /** What the client keeps may be wrong: load it anew. Events that follow are newer than what is loaded now. */
  readonly onResync: (token: string) => unknown
  /** It was too slow and resumes by itself, with nothing missing. */
  readonly onLagged?: ((from: string) => unknown) | undefined
  /** `error` says why the connection was lost or is closed for good. */
  readonly onState?: ((state: ConnectionState, error?: Error) => unknown) | undefined
  /** Keeps the token over a reload: `localStorage`, or anything like it. */
  readonly storage?: TokenStorage | undefined
  /** Where in the storage; by address, types and aggregate unless told. */
  readonly storageKey?: string | undefined
  /** After so long without a sign of life the connection counts as lost: three heartbeats, 45,000 ms, unless told. */
  readonly silenceMs?: number | undefined
  readonly fetch?: typeof fetch | undefined
}

export type HeaderValues = Readonly<Record<string, string>>

export interface Connection<C extends Catalogue = Catalogue> extends AsyncIterable<EventIn<C>> {
  readonly state: ConnectionState
  /** Where it would resume. */
  readonly token: string | undefined
  /** Ends it for good; may be called twice. */
  close(): void
  /** Resolves when it is over, with the reason if it was not `close`. */
  readonly closed: Promise<Error | undefined>
}

/** The server does not want this client: asking again would not help. */
export class FeedRefusedError extends Error {
  override readonly name = 'FeedRefusedError'
  /** Of the response; 0 when it was told in the stream. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
