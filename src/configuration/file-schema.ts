/**
 * The whole of aftercommit.toml but for the observers: what the file is checked against, and what editors are told. The
 * defaults in here are for people; `settings.ts` applies them, and a test keeps the two together.
 */
import { z } from 'zod'
import {
  count,
  destination,
  duration,
  envName,
  needed,
  networkTarget,
  orReference,
  rate,
  retention,
  setting,
  size,
  table,
  text,
} from './fields.ts'
import { providers } from './providers-schema.ts'

const POSTGRES_URL = String.raw`postgres(?:ql)?:\/\/\S+`

const connection = {
  database: setting(orReference(`${POSTGRES_URL}|embedded`, 'must be a URL like postgres://user@host:5432/name'), {
    description: `Where the log is kept: a postgres:// URL, "embedded", or \${env:NAME}.`,
    fallback: 'embedded',
    expects: `must be a URL like postgres://user@host:5432/name, "embedded", or a reference like \${env:DATABASE_URL}`,
  }),
  direct_database: setting(orReference(POSTGRES_URL, 'must be a URL like postgres://user@host:5432/name'), {
    description: 'An address past a transaction-mode pooler, for LISTEN, session locks and migrations.',
  }),
  schema: setting(
    z
      .string()
      .regex(/^(?!pg_)[^$\0]+$/)
      .refine((schema) => Buffer.byteLength(schema) <= 63),
    {
      description: 'The Postgres schema that holds everything.',
      fallback: 'aftercommit',
      expects: 'must be the name of a Postgres schema: 1 to 63 bytes, no dollar sign, not beginning with pg_',
    },
  ),
}

const log = table('The log of events.', {
  retention: setting(retention, {
    description: 'Events older than this may be dropped; "unlimited" keeps all. Stored by migrate.',
    fallback: 'unlimited',
  }),
  wake: setting(z.enum(['doorbell', 'poll']), {
    description: 'How readers learn of new events. Stored by migrate.',
    fallback: 'doorbell',
  }),
  max_payload: setting(size, {
    description: 'The largest payload of an event, at most 16MB. Stored by migrate.',
    fallback: '1MB',
  }),
  max_nesting: setting(z.int().min(1).max(1_000), {
    description: 'How deep objects and lists in a payload may nest. Stored by migrate.',
    fallback: 64,
  }),
  max_depth: setting(count, {
    description: 'How many causes an event may have behind it.',
    fallback: 32,
    expects: 'must be a whole number from 1 up',
  }),
})

const dlq = table('Dead letters.', {
  store_stacks: setting(z.boolean(), { description: 'Keep stacks of errors; they may quote data.', fallback: false }),
  auto_redrive: table('Try dead letters of subscriptions again by themselves; off unless given.', {
    after: needed(duration, { description: 'So long after they died.' }),
    max: needed(count, { description: 'So often.' }),
  }).optional(),
  retention: setting(duration, {
    description: 'How long letters are kept that were redriven with success or discarded. Dead ones stay.',
    fallback: '30d',
  }),
})

const runtime = table('How much observers do at once.', {
  record: setting(z.enum(['all', 'problems']), {
    description: 'Which runs are recorded: all of them, or those that did not simply succeed.',
    fallback: 'all',
  }),
  channel_capacity: setting(count, { description: 'Events read and not finished, at most.', fallback: 1_000 }),
  max_concurrency: setting(z.int().min(1).max(10_000), {
    description: 'Actions that run at once in a process.',
    fallback: 50,
  }),
  overflow_policy: setting(z.enum(['block', 'drop', 'drop_oldest']), {
    description:
      'Where a slow subscriber of ac.broadcaster goes on: with the oldest event that is kept, or with "drop" with what is new. Events of the log always wait.',
    fallback: 'block',
  }),
  backlog_alert_threshold: setting(count, {
    description: 'More waiting events than this are one WARN, a gauge and one alert.',
    fallback: 500,
  }),
  shutdown_timeout: setting(duration, { description: 'How long a stop waits for running actions.', fallback: '30s' }),
})

const failureAlerts = table('Where `on_failure = "alert"` and the backlog alert go.', {
  slack: setting(text, { description: 'A channel, sent through [providers.slack].' }),
  email: setting(text, { description: 'An address, sent through [providers.smtp].' }),
})

const redis = table('Redis, for the bridge and for caches.', {
  enabled: setting(z.boolean(), {
    description: 'Enabled and not reachable is not ready, never silently off.',
    fallback: true,
  }),
  url: needed(orReference(String.raw`rediss?:\/\/\S+`, 'must be a URL that begins with redis:// or rediss://'), {
    description: 'Where it is.',
  }),
  pool_size: setting(z.int().min(1).max(1_000), { description: 'Connections.', fallback: 10 }),
  timeout_ms: setting(count, { description: 'How long one call may take.', fallback: 5_000 }),
  channel: setting(text, { description: 'Where events are published; aftercommit:<schema>:events unless told.' }),
})

const emailTemplate = table('A mail that actions use by its name.', {
  subject: needed(text, { description: 'The subject; a template.' }),
  html: setting(text, { description: 'The body as HTML; a template.' }),
  text: setting(text, { description: 'The body as plain text; a template.' }),
}).superRefine(({ html, text }, context) => {
  if (html !== undefined || text !== undefined) return
  context.addIssue({ code: 'custom', path: ['html'], message: 'is missing. A mail needs html, text or both.' })
})

const limits = table('Limits of one destination, over all observers, workflows and processes.', {
  concurrency: setting(z.int().min(1).max(10_000), { description: 'Calls at once.' }),
  rate: setting(rate, { description: 'Calls in a span of time.' }),
  burst: setting(count, {
    description: 'Calls that may come at once after a pause; as many as `rate` says unless told.',
  }),
}).superRefine(({ rate, burst }, context) => {
  if (burst === undefined || rate !== undefined) return
  context.addIssue({
    code: 'custom',
    path: ['burst'],
    message: 'needs a rate: it is how much of one may come at once.',
  })
})

const capture = table('A table whose row changes become events. Put in place by migrate.', {
  aggregate: setting(z.string().regex(/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/), {
    description: "The aggregate type of its events; the table's name in the singular unless given.",
    expects: 'must be a lower-case name like order',
  }),
  omit: setting(z.array(text), { description: 'Columns that are left out of every event.', fallback: [] }),
  truncate: setting(z.enum(['event', 'deny', 'ignore']), { description: 'What TRUNCATE does.', fallback: 'event' }),
  each: setting(z.enum(['statement', 'row']), {
    description:
      'Whether triggers fire once per statement or per row; needed where the table has row triggers of its own.',
  }),
  unchanged: setting(z.boolean(), {
    description: 'Whether an UPDATE that changes nothing is an event.',
    fallback: false,
  }),
})

export const settingsShape = {
  include: setting(z.array(text), { description: 'More files of this folder, relative to this one.', fallback: [] }),
  ...connection,
  group: setting(z.string().regex(/^[\w.-]{1,60}$/), {
    description: 'Which observers these are: a service with rules of its own has a group of its own.',
    fallback: 'observers',
    expects: 'must be 1 to 60 letters, digits and _ . -',
  }),
  log: log.optional(),
  capture: z.record(z.string(), capture).meta({ description: 'Captured tables, by name.' }).optional(),
  dlq: dlq.optional(),
  runtime: runtime.optional(),
  failure_alerts: failureAlerts.optional(),
  actions: table('Action types that are not built in.', {
    packages: setting(z.array(text), {
      description: 'Modules that bring some: names of packages, or paths relative to this file that begin with ./',
      fallback: [],
    }),
  }).optional(),
  providers: providers.optional(),
  redis: redis.optional(),
  graphql: table('GraphQL.', {
    subscriptions_enabled: setting(z.boolean(), { description: 'Offer subscriptions.', fallback: true }),
  }).optional(),
  audit: table('The audit trail.', {
    enabled: setting(z.boolean(), { description: 'Keep one.', fallback: true }),
  }).optional(),
  email_templates: z.record(z.string(), emailTemplate).meta({ description: 'Mails by name.' }).optional(),
  templates: table('What templates and conditions may see.', {
    env: setting(z.array(envName), { description: 'Variables that they may read as env.NAME.', fallback: [] }),
  }).optional(),
  destinations: z
    .record(destination, limits)
    .meta({ description: 'Limits by destination: an origin, a provider, or a word of a workflow.' })
    .optional(),
  network: table('The network guard.', {
    allow: setting(z.array(networkTarget), {
      description: 'Private targets that actions may reach; everything else that is private is refused.',
      fallback: [],
    }),
  }).optional(),
}

/** The file with whatever its observers are; they are checked one by one, by the action types they use. */
export const settingsSchema = z.strictObject({
  ...settingsShape,
  observers: z.record(z.string(), z.unknown()).optional(),
})

export type SettingsInput = z.infer<typeof settingsSchema>
