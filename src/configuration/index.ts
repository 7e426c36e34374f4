/**
 * The configuration file: reading TOML with the place of everything in it, the schema of its settings, and mistakes that
 * are found all at once and pointed at. It promises that nothing it throws, prints or gives out as text holds a secret.
 *
 * It knows nothing of observers but that they are there; their half is in observers/config. Start reading with
 * read-configuration.ts, then file-schema.ts and find-mistakes.ts. Loads zod and a TOML parser, so programs that may do
 * without a file import it when they need it: `await import('../configuration/index.ts')`.
 */
export { expecting, keysOf } from './expectations.ts'
export type { Rate } from './fields.ts'
export * as fields from './fields.ts'
export { type SettingsInput, settingsSchema, settingsShape } from './file-schema.ts'
export { type Checked, checkData, findMistakes } from './find-mistakes.ts'
export type { ConfigurationSource } from './load-files.ts'
export { ConfigError, type Found, type Mistake, type Path, pathKey, pathText } from './mistake.ts'
export { type ReadConfiguration, readConfiguration } from './read-configuration.ts'
export { type References, resolveReferences, withSecrets } from './references.ts'
export { reveal, Secret, type SecretText } from './secret.ts'
export { isSensitive } from './sensitive.ts'
export {
  DEFAULT_GROUP,
  type EmailTemplate,
  type ProviderName,
  type ProviderSettings,
  type RedisSettings,
  type Settings,
  toSettings,
} from './settings.ts'
export { EMPTY, type FileStamps } from './stamp.ts'
export type { Table } from './toml-file.ts'
export { type FileWatch, type WatchOptions, watchFiles } from './watch-files.ts'
