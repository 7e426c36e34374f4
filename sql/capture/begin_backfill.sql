-- grants: emit
-- Begins the backfill of a captured table, or goes on with one that ended early. One that is finished stays so, unless it is asked
-- for again. True where rows are left.
create or replace function :schema.begin_backfill(p_relation oid, p_again boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_type text;
begin
  select c.aggregate_type into v_type from :schema.captured() c where c.relation = p_relation;
  if not found then
    raise exception '% is not captured, so its rows have no events; nothing was emitted.', p_relation::regclass
      using errcode = 'AC017', hint = 'Capture it first: then no change falls between the existing rows and the captured ones.';
  end if;
  if not has_table_privilege(session_user, p_relation, 'select') then
    raise exception 'Role % may not read %, so nothing was emitted.', session_user, p_relation::regclass using errcode = 'AC017';
  end if;
  insert into :schema.backfills as b (aggregate_type) values (v_type)
  on conflict (aggregate_type) do update set after_key = null, rows = 0, started_at = clock_timestamp(), finished_at = null
    where p_again and b.finished_at is not null;
  return exists (select from :schema.backfills b where b.aggregate_type = v_type and b.finished_at is null);
end
$aftercommit$;
