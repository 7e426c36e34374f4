/** All that a migration could leave different in a schema, without times: two schemas are alike when these are equal. */
import type { Database } from '../../src/postgres/index.ts'

export async function schemaSnapshot(db: Database): Promise<unknown> {
  const results = await db.queryMany(`
    select relname::text, relkind::text, relacl::text, reloptions::text, obj_description(oid, 'pg_class') as comment
      from pg_class where relnamespace = '${db.schema}'::regnamespace order by 1;
    select table_name::text, column_name::text, data_type::text, is_nullable::text, column_default::text
      from information_schema.columns where table_schema = '${db.schemaName.name}' order by 1, 2;
    select conrelid::regclass::text as on_table, conname::text, pg_get_constraintdef(oid) as definition
      from pg_constraint where connamespace = '${db.schema}'::regnamespace order by 1, 2;
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition, indisvalid
      from pg_index join pg_class on oid = indexrelid
     where relnamespace = '${db.schema}'::regnamespace order by 1;
    select proname::text, pg_get_functiondef(oid) as body, proacl::text, obj_description(oid, 'pg_proc') as comment
      from pg_proc where pronamespace = '${db.schema}'::regnamespace order by 1;
    select viewname::text, definition from pg_views where schemaname = '${db.schemaName.name}' order by 1;
    select tgrelid::regclass::text as on_table, tgname::text, tgenabled::text from pg_trigger
     where tgrelid in (select oid from pg_class where relnamespace = '${db.schema}'::regnamespace) and not tgisinternal
     order by 1, 2;
    select version, name, checksum, breaks_older from ${db.schema}.migrations order by 1;
    select name, kind, object, on_table, hash, version from ${db.schema}.sql_files order by 1`)
  return results.map(({ rows }) => rows)
}
