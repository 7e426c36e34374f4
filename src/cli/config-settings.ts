/** The settings that commands use: where else than in the file they may come from, and what they are when nobody says. */
export interface SettingDefinition {
  /** As in the file; a dot stands for a table. */
  readonly name: string
  readonly env: string
  readonly flag?: 'database' | 'schema'
  /** For people; `config show` prints it. */
  readonly fallback: string | number
  readonly numeric?: boolean
}

export const SETTINGS = [
  { name: 'database', env: 'DATABASE_URL', flag: 'database', fallback: 'embedded' },
  { name: 'direct_database', env: 'AFTERCOMMIT_DIRECT_DATABASE_URL', fallback: 'same as database' },
  { name: 'schema', env: 'AFTERCOMMIT_SCHEMA', flag: 'schema', fallback: 'aftercommit' },
  { name: 'log.retention', env: 'AFTERCOMMIT_LOG_RETENTION', fallback: 'unlimited' },
  { name: 'log.wake', env: 'AFTERCOMMIT_LOG_WAKE', fallback: 'doorbell' },
  { name: 'log.max_payload', env: 'AFTERCOMMIT_LOG_MAX_PAYLOAD', fallback: '1MB', numeric: true },
  { name: 'log.max_nesting', env: 'AFTERCOMMIT_LOG_MAX_NESTING', fallback: 64, numeric: true },
  { name: 'log.max_depth', env: 'AFTERCOMMIT_LOG_MAX_DEPTH', fallback: 32, numeric: true },
] as const satisfies readonly SettingDefinition[]

export type SettingName = (typeof SETTINGS)[number]['name']
