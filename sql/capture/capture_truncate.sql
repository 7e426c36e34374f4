-- grants: emit
-- Trigger of a captured table: TRUNCATE is one event, or is denied. TRUNCATE of a parent fires the parent's trigger first: it
-- lists its children in a setting of the transaction, and each child strikes itself off instead of writing an event.
-- Arguments: aggregate type, 'event' or 'deny', the captured table.
create or replace function :schema.capture_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_awaited oid[];
  v_max_depth integer;
  v_metadata jsonb;
  v_tenant text;
begin
  if tg_argv[1] = 'deny' then
    raise exception 'TRUNCATE of % is denied, because it is captured with truncate => ''deny''; nothing was removed.', tg_argv[2]
      using errcode = 'AC018', hint = 'DELETE its rows, or capture it with truncate => ''event''.';
  end if;
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  v_awaited := nullif(current_setting('aftercommit.truncated_children', true), '')::oid[];
  if tg_relid = any (v_awaited) then
    perform set_config('aftercommit.truncated_children', array_remove(v_awaited, tg_relid)::text, true);
    return null;
  end if;
  perform set_config('aftercommit.truncated_children', array(
    with recursive children as (
      select inhrelid as id from pg_inherits where inhparent = tg_relid
      union
      select i.inhrelid from pg_inherits i join children c on c.id = i.inhparent)
    select c.id from children c join pg_trigger t on t.tgrelid = c.id and t.tgname = tg_name and t.tgenabled in ('O', 'A'))::text, true);

  select s.max_depth into v_max_depth from :schema.settings s;
  select * into v_metadata, v_tenant from :schema.capture_context(tg_argv[0], tg_argv[2], v_max_depth);
  insert into :schema.events (id, type, tenant, payload, metadata, occurred_at)
  values (:schema.new_id(), tg_argv[0] || '.truncated', v_tenant,
    jsonb_build_object('table', tg_table_schema || '.' || tg_table_name), v_metadata, clock_timestamp());
  return null;
end
$aftercommit$;
