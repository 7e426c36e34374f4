/** Every setting: where it may come from, what it may be, and what it is when nobody says. */
export interface SettingDefinition {
  /** As in the file; a dot stands for a table. */
  readonly name: string
  readonly env: string
  readonly flag?: 'database' | 'schema'
  /** For people; `config show` prints it. */
  readonly fallback: string | number
  /** The rest of a sentence that begins with the name. */
  readonly expects: string
  readonly description: string
  readonly numeric?: boolean
}

export const SETTINGS = [
  {
    name: 'database',
    env: 'DATABASE_URL',
    flag: 'database',
    fallback: 'embedded',
    expects: `must be a URL like postgres://user@host:5432/name, "embedded", or a reference like \${env:DATABASE_URL}`,
    description: `Where the log is kept: a postgres:// URL, "embedded", or \${env:NAME}.`,
  },
  {
    name: 'direct_database',
    env: 'AFTERCOMMIT_DIRECT_DATABASE_URL',
    fallback: 'same as database',
    expects: `must be a URL like postgres://user@host:5432/name or a reference like \${env:NAME}`,
    description: 'An address past a transaction-mode pooler, for LISTEN, session locks and migrations.',
  },
  {
    name: 'schema',
    env: 'AFTERCOMMIT_SCHEMA',
    flag: 'schema',
    fallback: 'aftercommit',
    expects: 'must be the name of a Postgres schema: 1 to 63 bytes, no dollar sign, not beginning with pg_',
    description: 'The Postgres schema that holds everything.',
  },
  {
    name: 'log.retention',
    env: 'AFTERCOMMIT_LOG_RETENTION',
    fallback: 'unlimited',
    expects: 'must be "unlimited" or a duration like "30d", "12h" or "PT36H"',
    description: 'Events older than this may be dropped; "unlimited" keeps all. Stored by migrate.',
  },
  {
    name: 'log.wake',
    env: 'AFTERCOMMIT_LOG_WAKE',
    fallback: 'doorbell',
    expects: 'must be "doorbell" or "poll"',
    description: 'How readers learn of new events. Stored by migrate.',
  },
  {
    name: 'log.max_payload',
    env: 'AFTERCOMMIT_LOG_MAX_PAYLOAD',
    fallback: '1MB',
    expects: 'must be a size like "20kB" or "1MB", or a number of bytes',
    description: 'The largest payload of an event.',
    numeric: true,
  },
  {
    name: 'log.max_nesting',
    env: 'AFTERCOMMIT_LOG_MAX_NESTING',
    fallback: 64,
    expects: 'must be a whole number from 1 to 1000',
    description: 'How deep objects and lists in a payload may nest.',
    numeric: true,
  },
  {
    name: 'log.max_depth',
    env: 'AFTERCOMMIT_LOG_MAX_DEPTH',
    fallback: 32,
    expects: 'must be a whole number from 1 up',
    description: 'How many causes an event may have behind it.',
    numeric: true,
  },
] as const satisfies readonly SettingDefinition[]

export type SettingName = (typeof SETTINGS)[number]['name']

export function findSetting(name: string): SettingDefinition | undefined {
  return SETTINGS.find((setting) => setting.name === name)
}
