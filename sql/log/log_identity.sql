-- grants: run
-- Server, timeline and database: a history that goes on elsewhere is another history.
create or replace function :schema.log_identity() returns text
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select format('%s/%s/%s',
    (select system_identifier from pg_control_system()),
    case when pg_is_in_recovery() then '-' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end,
    (select oid from pg_database where datname = current_database()))
$aftercommit$;
