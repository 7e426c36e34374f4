/** The text search configuration of an index: how text becomes words. */
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'

/** Plain, so that no number of another catalogue passes for a name. */
export function isLanguageName(language: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/.test(language)
}

/** Throws BAD_OPTION for a configuration that this server does not have. */
export async function checkLanguage(db: Queryable, language: string): Promise<void> {
  const { rows } = await db.query<{ name: string }>(
    `select cfgname as name from pg_catalog.pg_ts_config where pg_catalog.pg_ts_config_is_visible(oid)
      union
     select n.nspname || '.' || c.cfgname
       from pg_catalog.pg_ts_config c
       join pg_catalog.pg_namespace n on n.oid = c.cfgnamespace`,
  )
  const names = rows.map(({ name }) => name)
  if (names.includes(language)) return
  const near = closest(language, names)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  throw unknownLanguage(language, hint)
}

export function unknownLanguage(language: string, hint = ''): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `This database has no text search configuration "${language.slice(0, 60)}".${hint} ` +
      'Choose one of pg_ts_config, such as "simple" or "english".',
  )
}
