-- grants: emit
-- Ends the capture of a table: drops its triggers, and forgets it. False where it was not captured. Events that exist stay. A
-- table that is gone is named by its aggregate type: uncapture(null, aggregate => 'order').
create or replace function :schema.uncapture(relation regclass, aggregate text default null) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_type text := aggregate;
  r record;
begin
  select c.aggregate_type into v_type from :schema.captured() c
   where c.relation = uncapture.relation or c.aggregate_type = v_type;
  if not found then return false; end if;
  for r in
    select g.tgname as name, g.tgrelid::regclass as relation
      from :schema.captured() c
     cross join :schema.capture_tree(c.relation) t (id)
      join pg_trigger g on g.tgrelid = t.id
      join pg_proc f on f.oid = g.tgfoid
      join pg_namespace n on n.oid = f.pronamespace
     where c.aggregate_type = v_type and not g.tgisinternal and g.tgparentid = 0
       and n.nspname = :schema_literal and f.proname in ('capture_rows', 'capture_row', 'capture_truncate')
  loop
    execute format('drop trigger %I on %s', r.name, r.relation);
  end loop;
  perform :schema.unregister_capture(v_type);
  return true;
end
$aftercommit$;
