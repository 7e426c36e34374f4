/** The settings of the file as the code wants them: camelCase, milliseconds, every default filled in. */
import { toMs } from '../runtime/index.ts'
import { parseRate, type Rate } from './fields.ts'
import type { SettingsInput } from './file-schema.ts'
import { reveal, type SecretText } from './secret.ts'

export interface Settings {
  /** Of the observers; each group has a subscription of its own. */
  readonly group: string
  readonly log: LogSettings
  readonly dlq: {
    readonly storeStacks: boolean
    readonly autoRedrive: { afterMs: number; max: number } | null
    readonly retentionMs: number
  }
  readonly runtime: RuntimeSettings
  readonly failureAlerts: { readonly slack: string | null; readonly email: string | null }
  /** Modules that bring action types. */
  readonly actions: { readonly packages: readonly string[] }
  readonly providers: ProviderSettings
  readonly redis: RedisSettings | null
  readonly graphql: { readonly subscriptionsEnabled: boolean }
  readonly audit: { readonly enabled: boolean }
  /** Without a prototype, like every table here whose names are the user's. */
  readonly emailTemplates: Readonly<Record<string, EmailTemplate>>
  /** Names of variables that templates and conditions may read. */
  readonly templates: { readonly env: readonly string[] }
  readonly destinations: Readonly<Record<string, DestinationLimits>>
  readonly network: { readonly allow: readonly string[] }
}

/** As written, because `createAftercommit` takes them so; undefined is for its own default. */
export interface LogSettings {
  readonly retention: string | undefined
  readonly wake: 'doorbell' | 'poll' | undefined
  readonly maxPayload: string | number | undefined
  readonly maxNesting: number | undefined
  readonly maxDepth: number | undefined
}

export interface RuntimeSettings {
  readonly record: 'all' | 'problems'
  readonly channelCapacity: number
  readonly maxConcurrency: number
  readonly overflowPolicy: 'block' | 'drop' | 'drop_oldest'
  readonly backlogAlertThreshold: number
  readonly shutdownTimeoutMs: number
}

export interface ProviderSettings {
  readonly slack?: { readonly webhookUrl: SecretText }
  readonly smtp?: { readonly url: SecretText; readonly from: string }
  readonly sms?: {
    readonly account: SecretText
    readonly token: SecretText
    readonly from: SecretText
    readonly baseUrl: SecretText | undefined
  }
  readonly push?: { readonly subject: SecretText; readonly publicKey: SecretText; readonly privateKey: SecretText }
  readonly search?: {
    readonly kind: 'postgres' | 'elasticsearch' | 'opensearch' | 'meilisearch'
    readonly url: SecretText | undefined
    readonly apiKey: SecretText | undefined
    readonly language: string | undefined
  }
}

export type ProviderName = keyof ProviderSettings

export interface RedisSettings {
  readonly enabled: boolean
  readonly url: SecretText
  readonly poolSize: number
  readonly timeoutMs: number
  readonly channel: string | undefined
}

export interface EmailTemplate {
  readonly subject: string
  readonly html?: string
  readonly text?: string
}

export interface DestinationLimits {
  readonly concurrency: number | null
  readonly rate: Rate | null
  /** As many as the rate says when null. */
  readonly burst: number | null
}

/** The group of observers that belong to no other. */
export const DEFAULT_GROUP = 'observers'

/** Takes data that the schema has accepted, its secrets in place. */
export function toSettings(file: SettingsInput): Settings {
  const { log = {}, dlq = {}, failure_alerts: alerts = {}, graphql, audit } = file
  return {
    group: file.group ?? DEFAULT_GROUP,
    log: {
      retention: log.retention,
      wake: log.wake,
      maxPayload: log.max_payload,
      maxNesting: log.max_nesting,
      maxDepth: log.max_depth,
    },
    dlq: {
      storeStacks: dlq.store_stacks ?? false,
      autoRedrive: dlq.auto_redrive
        ? { afterMs: toMs(dlq.auto_redrive.after, 'dlq.auto_redrive.after'), max: dlq.auto_redrive.max }
        : null,
      retentionMs: toMs(dlq.retention ?? '30d', 'dlq.retention'),
    },
    runtime: toRuntime(file.runtime),
    failureAlerts: { slack: alerts.slack ?? null, email: alerts.email ?? null },
    actions: { packages: file.actions?.packages ?? [] },
    providers: toProviders(file.providers),
    redis: toRedis(file.redis),
    // A table that is there means yes unless it says no; one that is not there means no.
    graphql: { subscriptionsEnabled: graphql !== undefined && (graphql.subscriptions_enabled ?? true) },
    audit: { enabled: audit !== undefined && (audit.enabled ?? true) },
    emailTemplates: mapTable(file.email_templates, toTemplate),
    templates: { env: file.templates?.env ?? [] },
    destinations: mapTable(file.destinations, ({ concurrency, rate, burst }) => ({
      concurrency: concurrency ?? null,
      rate: rate === undefined ? null : parseRate(rate),
      burst: burst ?? null,
    })),
    network: { allow: file.network?.allow ?? [] },
  }
}

function toRuntime(runtime: SettingsInput['runtime'] = {}): RuntimeSettings {
  return {
    record: runtime.record ?? 'all',
    channelCapacity: runtime.channel_capacity ?? 1_000,
    maxConcurrency: runtime.max_concurrency ?? 50,
    overflowPolicy: runtime.overflow_policy ?? 'block',
    backlogAlertThreshold: runtime.backlog_alert_threshold ?? 500,
    shutdownTimeoutMs: toMs(runtime.shutdown_timeout ?? '30s', 'runtime.shutdown_timeout'),
  }
}

function toProviders({
  slack,
  smtp,
  sms,
  push,
  search,
}: NonNullable<SettingsInput['providers']> = {}): ProviderSettings {
  return {
    ...(slack && { slack: { webhookUrl: slack.webhook_url } }),
    ...(smtp && { smtp: { url: smtp.url, from: reveal(smtp.from) } }),
    ...(sms && { sms: { account: sms.account, token: sms.token, from: sms.from, baseUrl: sms.base_url } }),
    ...(push && { push: { subject: push.subject, publicKey: push.public_key, privateKey: push.private_key } }),
    ...(search && {
      search: { kind: search.kind, url: search.url, apiKey: search.api_key, language: search.language },
    }),
  }
}

function toRedis(redis: SettingsInput['redis']): RedisSettings | null {
  return redis
    ? {
        enabled: redis.enabled ?? true,
        url: redis.url,
        poolSize: redis.pool_size ?? 10,
        timeoutMs: redis.timeout_ms ?? 5_000,
        channel: redis.channel,
      }
    : null
}

function toTemplate({
  subject,
  html,
  text,
}: {
  subject: string
  html?: string | undefined
  text?: string | undefined
}) {
  return { subject, ...(html !== undefined && { html }), ...(text !== undefined && { text }) }
}

function mapTable<From, To>(
  given: Readonly<Record<string, From>> | undefined,
  to: (one: From) => To,
): Record<string, To> {
  return Object.assign(
    Object.create(null),
    Object.fromEntries(Object.entries(given ?? {}).map(([name, one]) => [name, to(one)])),
  )
}
