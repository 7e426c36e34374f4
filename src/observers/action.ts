/**
 * The port between observers and what they do. An action type turns the keys of one action into a prepared action, once,
 * when the configuration is loaded; the executor runs that for every event that matches. Whoever writes an action type
 * may assume that `run` is called at most once at a time per event, observer and action, that attempts of it carry the
 * same idempotency key, and that a transient `ObserverError` leads to another attempt by the policy of the observer.
 */
import { hash } from 'node:crypto'
import type { z } from 'zod'
import type { CacheActions, CacheStore } from '../cache/index.ts'
import type { Scope } from '../conditions/index.ts'
import type { SecretText } from '../configuration/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Pool } from '../postgres/index.ts'
import type { Abortable, Clock, Logger, Telemetry } from '../runtime/index.ts'
import type { DocumentWriter } from '../search/index.ts'
import type { Mistakes } from './actions/mistakes.ts'
import type { Http, NetworkRules } from './network/index.ts'
import type { ObserverError, Received, SentRequest } from './observer-error.ts'

export interface ActionRequest {
  readonly event: AnyEvent
  readonly observer: string
  /** The action's name; with the observer it is the action's identity. */
  readonly action: string
  /** 1 for the first. */
  readonly attempt: number
  /** What `idempotencyKeyOf` makes; receivers know a repetition by it. */
  readonly idempotencyKey: string
  /** When the first attempt was due. */
  readonly createdAt: Date
  /** Ends the attempt: the process is stopping, or the observer's own timeout has passed. */
  readonly signal: AbortSignal
  /** The same as `signal`, which is made when it is first read; listening to this makes none. */
  readonly abort?: Abortable | undefined
  readonly scope: Scope
}

export interface ActionResult {
  readonly actionType: string
  readonly success: boolean
  readonly message: string
  readonly durationMs: number
  readonly request?: SentRequest
  readonly response?: Received
}

/** What would be sent, for dry runs and explanations. Secrets are masked; what is rendered from the event is shown. */
export interface Preview {
  readonly actionType: string
  readonly destination: string | null
  readonly content: Readonly<Record<string, unknown>>
}

export interface PreparedAction {
  /** What limits and circuits go by: action type and origin, else the provider; null for what stays in the process. */
  readonly destination: string | null
  /** `retry = false`: whatever happens, there is no second attempt. */
  readonly singleAttempt: boolean
  /** How long an attempt may take, where the action leaves that to whoever runs it; else it limits itself. */
  readonly timeoutMs?: number
  /** What an attempt that took longer failed with. */
  toTimeout?(): ObserverError
  /** Before it is put in force: throws OB012 for what only the database can tell. */
  ready?(): Promise<void>
  /**
   * What the database lacks for it, as a sentence; undefined when nothing is lacking. Asked at start, by `doctor`, and by
   * `observers validate --database`.
   */
  lacks?(): Promise<string | undefined>
  /** Done when it returns or resolves; throws `ObserverError` otherwise. */
  run(request: ActionRequest): ActionResult | Promise<ActionResult>
  /** Sends nothing. Throws what `run` would throw before sending: a template that fails, an address that is refused. */
  preview(request: Pick<ActionRequest, 'event' | 'idempotencyKey' | 'scope'>): Preview
}

export interface ActionType<Config = unknown> {
  readonly type: string
  /** The keys of the action, `type` and `name` excepted. Strict: unknown keys are refused. */
  readonly schema: z.ZodType<Config>
  /** One line for editors and lists. */
  readonly describe?: string
  /** Which default retry policy applies: other people's services get hours, our own seconds. */
  readonly defaultRetry: 'service' | 'local'
  /** Throws one `PrepareError` with every mistake that can be known before an event is seen. */
  prepare(config: Config, context: ActionContext): PreparedAction
}

/** What actions may use. Made by `createActionContext`, one per loaded configuration. */
export interface ActionContext {
  readonly templates: TemplateCompiler
  readonly providers: Providers
  readonly emailTemplates: Readonly<Record<string, EmailTemplate>>
  readonly network: NetworkRules
  /** For addresses that observers name: private ones are refused unless `network` allows them. */
  readonly guarded: Http
  /** For the operator's own addresses, under `[providers]`. */
  readonly unguarded: Http
  readonly mailer: Mailer | null
  readonly handlers: ReadonlyMap<string, CustomHandler>
  readonly database: Pick<Pool, 'transaction'>
  /** The search indexes of this database. */
  readonly documents: DocumentWriter
  /** The Redis of `[redis]`; null when there is none, or it is not enabled. */
  readonly sharedCache: SharedCache | null
  /** The caches inside the processes; null where nothing runs. */
  readonly cache: CacheActions | null
  readonly logger: Logger
  readonly clock: Clock
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  /** The `source` of CloudEvents. */
  readonly source: string
  /** Collects what is wrong with an action, so that `prepare` tells everything at once. */
  readonly createMistakes: () => Mistakes
}

export interface Providers {
  readonly slack?: { readonly webhookUrl: SecretText }
  readonly smtp?: { readonly url: SecretText; readonly from: string }
  readonly sms?: SmsProvider
  readonly push?: PushProvider
  readonly search?: SearchProvider
}

/** A cache that all processes use, and the name of the place for limits and messages. */
export interface SharedCache {
  readonly origin: string
  /** Connects with the first call. */
  readonly store: CacheStore
}

/** An account at an API like Twilio's. */
export interface SmsProvider {
  readonly account: SecretText
  readonly token: SecretText
  /** A number, a short code, a name of up to 11 letters, or the id of a messaging service. */
  readonly from: SecretText
  readonly baseUrl?: SecretText | undefined
}

export interface SearchProvider {
  readonly kind: 'postgres' | 'elasticsearch' | 'opensearch' | 'meilisearch'
  /** Not for Postgres. */
  readonly url?: SecretText | undefined
  readonly apiKey?: SecretText | undefined
  /** Only for Postgres: how text becomes words. */
  readonly language?: string | undefined
}

/** The VAPID identity that push services know us by. */
export interface PushProvider {
  readonly subject: SecretText
  readonly publicKey: SecretText
  readonly privateKey: SecretText
}

export interface EmailTemplate {
  readonly subject: string
  readonly text?: string
  readonly html?: string
}

/** The part of the template engine that actions need. The target is the field that is filled; it decides the escaping. */
export interface TemplateCompiler {
  /** `name` is the field, as messages call it. */
  text(source: string, target: TextTarget, name: string): CompiledText
  /** Every string is a template; one that is a single hole keeps the type of its value. */
  tree(value: unknown, name: string): CompiledTree
  /** Where the first hole of a URL begins; undefined without one. Throws when that is within scheme, host or port. */
  firstHoleOfUrl(source: string): number | undefined
}

export type TextTarget = 'plain' | 'url' | 'header' | 'html' | 'slack' | 'glob'

export interface CompiledText {
  /** It renders the same for every event, whatever scope it is given. */
  readonly isConstant: boolean
  render(scope: Scope): string
}

export interface CompiledTree {
  render(scope: Scope): unknown
}

export interface Mailer {
  /** Hands one mail over. Throws `ObserverError` OB007, or the reason of the signal; the mail may go out even then. */
  send(mail: Mail, signal: AbortSignal): Promise<{ readonly accepted: number }>
}

export interface Mail {
  readonly from: Mailbox
  readonly to: readonly Mailbox[]
  readonly subject: string
  readonly text?: string
  readonly html?: string
  readonly messageId: string
}

export interface Mailbox {
  readonly name: string
  readonly address: string
}

/** A user's own action. Throwing means another attempt; `GiveUp` and `RetryAfter` are honoured. */
export type CustomHandler = (event: AnyEvent, context: CustomContext) => unknown

export interface CustomContext {
  /** The action's `config`, its templates rendered for this event. */
  readonly config: unknown
  readonly observer: string
  readonly action: string
  readonly attempt: number
  readonly idempotencyKey: string
  readonly createdAt: Date
  readonly signal: AbortSignal
}

/** One per event, observer and action, over every attempt, restart and redrive. Letters, digits, `-` and `_` only. */
export function idempotencyKeyOf(eventId: string, observer: string, action: string): string {
  return hash('sha256', JSON.stringify([eventId, observer, action]), 'base64url').slice(0, 32)
}
