/**
 * What transports (SSE, GraphQL) build on: a feed of the log for one client, by position. A reader is opened for a
 * client whose request was authorised, and hands out batches: first what the log holds above the resume token, then what
 * becomes final, in order, each once. Whatever breaks that is said by an item of its own and never by a silent gap:
 *
 *   revoked   the session, the token or the user was revoked, here or on another instance; the reader ends
 *   lagged    the client takes events more slowly than they come; it may resume after `from`; the reader ends
 *   resync    its place means nothing any more (history forked, lies beyond the log, or retention has let it go);
 *             what the client keeps must be loaded anew, and the reader goes on after `token`
 */
import type { EventKind } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'

/** A place in one unforked history, written `epoch.position`. */
export interface ResumeToken {
  readonly epoch: number
  readonly position: bigint
}

/** Whom a connection belongs to. An auth event that names one of them ends it: see revocation.ts. */
export interface Identity {
  readonly user?: string | undefined
  readonly session?: string | undefined
  readonly token?: string | undefined
}

/** How far a client may fall behind. */
export interface BufferLimits {
  readonly events: number
  readonly bytes: number
}

export interface FeedRequest {
  /** What carries it: the label of its metrics, such as `sse`. */
  readonly transport: string
  /** Patterns that the feed offers; everything but `auth.*` and `aftercommit.*` unless told. */
  readonly on?: readonly string[] | undefined
  /** Patterns that the client asks for, within those. */
  readonly types: readonly string[]
  readonly kinds?: readonly EventKind[] | undefined
  readonly aggregate?: { readonly type: string; readonly id?: string | undefined } | undefined
  readonly tenant?: string | undefined
  /** Resume after it; undefined: from now on. */
  readonly from: ResumeToken | undefined
  /** What `authorize` of the connection returned. */
  readonly principal: unknown
  readonly identity?: Identity | undefined
  /** What `feed.stand()` answered before the connection was authorised: revocations above it count. */
  readonly since?: bigint | undefined
  /** Asked for every event that matches, in order. Undefined: all of them. The event is shared: it is looked at only. */
  readonly allows?: ((event: AnyEvent) => boolean | Promise<boolean>) | undefined
  /** What may wait for a client that has caught up; 2,000 events and 4 MB unless told. */
  readonly maxBuffered?: Partial<BufferLimits> | undefined
  /** Bytes that an item takes on the wire; without it only events are counted. */
  readonly sizeOf?: ((item: FeedItem) => number) | undefined
  readonly signal: AbortSignal
}

/** Events are shared by all clients of the process: they are looked at and never changed. */
export type FeedItem =
  | { readonly kind: 'event'; readonly event: AnyEvent; readonly token: string }
  | { readonly kind: 'lagged'; readonly from: string }
  | { readonly kind: 'resync'; readonly token: string }
  | { readonly kind: 'revoked' }

/**
 * The first batch is empty and says that the reader has found its place; later ones are not empty. Iterated once. A batch
 * counts as taken when the next one is asked for. Throws what `allows` threw: the client may then resume after its token.
 */
export interface FeedReader extends AsyncIterable<readonly FeedItem[]> {
  /** Everything up to here was handed out or did not match: where the client may resume. Undefined before it began. */
  readonly token: string | undefined
  /** Fires when at most one more item follows: whoever waits for a slow client need wait no longer. */
  readonly ended: AbortSignal
  /** May be called twice. A waiting `next` ends. */
  close(): void
}

export interface Feed {
  /** Begins to follow the log if nobody does, and answers where it stands. To be asked before `authorize` is. */
  stand(): Promise<bigint>
  open(request: FeedRequest): FeedReader
  /** Fires when the instance stops: every reader ends without a further item. */
  readonly stopping: AbortSignal
}
