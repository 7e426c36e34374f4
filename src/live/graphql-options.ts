/**
 * What `ac.live.graphql` takes and gives, and what is made of it. Nothing here names a type of an optional package:
 * programs without them are compiled against it too.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { toBytes } from '../options.ts'
import { checkAnswer } from '../runtime/index.ts'
import { type SseOptions, type SseSettings, toSseSettings } from './sse-options.ts'

/** As for `ac.live.sse`; `cors.origins` are also the pages that may open a WebSocket, besides those of this host. */
export interface GraphqlOptions<Principal = unknown, Event = AnyEvent, Patterns = readonly string[]>
  extends Omit<SseOptions<Principal, Event, Patterns>, 'project' | 'source'> {
  /**
   * False: every request is answered with 404 and nothing is attached. Asked once, when it is created. What
   * `[graphql] subscriptions_enabled` of the loaded file says, unless told.
   */
  readonly enabled?: boolean | (() => boolean) | undefined
  /** Whether clients may ask for the schema; true unless told. */
  readonly introspection?: boolean | undefined
  /** The text of an operation; `"10kB"` unless told. */
  readonly maxQuery?: string | number | undefined
  /** The answer that one event makes; a larger one is told as an error. Default: `"8MB"`. */
  readonly maxAnswer?: string | number | undefined
  /** At a time over one WebSocket; 20 unless told. */
  readonly maxSubscriptions?: number | undefined
}

/** Node's `http.Server` or `https.Server`. */
export interface UpgradeServer {
  readonly listening: boolean
  on(event: 'upgrade', listener: UpgradeListener): unknown
  off(event: 'upgrade', listener: UpgradeListener): unknown
  listenerCount(event: 'upgrade'): number
}

type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void

export interface AttachOptions {
  /** `/graphql` unless told. */
  readonly path?: string | undefined
}

export interface GraphqlAttachment {
  /** Takes no more connections, and ends those there are with 1001. May be called twice. */
  detach(): Promise<void>
}

export interface GraphqlSettings extends SseSettings {
  readonly isEnabled: boolean
  readonly introspection: boolean
  readonly maxQueryBytes: number
  readonly maxAnswerBytes: number
  readonly maxSubscriptions: number
}

export function toGraphqlSettings(options: GraphqlOptions): GraphqlSettings {
  const { enabled = true, introspection = true, maxQuery = '10kB', maxAnswer = '8MB', maxSubscriptions = 20 } = options
  if (!Number.isSafeInteger(maxSubscriptions) || maxSubscriptions < 1) {
    throw new AftercommitError(
      'BAD_OPTION',
      '`maxSubscriptions` must be a whole number from 1 up. Nothing was created.',
    )
  }
  return {
    ...toSseSettings(options, ''),
    isEnabled: typeof enabled === 'function' ? checkAnswer(enabled(), ENABLED) : enabled,
    introspection,
    maxQueryBytes: toBytes(maxQuery, 'maxQuery'),
    maxAnswerBytes: toBytes(maxAnswer, 'maxAnswer'),
    maxSubscriptions,
  }
}

const ENABLED = { what: '`enabled` of GraphQL subscriptions', so: 'nothing was created' }

/** Besides the operation there are its variables, and what the protocol adds. */
export function maxMessageBytes({ maxQueryBytes }: GraphqlSettings): number {
  return maxQueryBytes + 64 * 1024
}
