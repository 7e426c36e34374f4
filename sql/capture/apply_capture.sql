-- grants: emit
-- Registers a captured table and puts its triggers in place, as its caller: for capture(), and for what mends triggers that
-- were lost. Triggers of earlier options are dropped.
create or replace function :schema.apply_capture(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  r record;
begin
  perform :schema.register_capture(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged);
  for r in
    select g.tgname as name, g.tgrelid::regclass as relation
      from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
     where g.tgrelid in (select :schema.capture_tree(p_relation)) and not g.tgisinternal and g.tgparentid = 0
       and n.nspname = :schema_literal and f.proname in ('capture_rows', 'capture_row', 'capture_truncate')
       and not exists (
         select from :schema.capture_triggers(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged) w
          where w.relation = g.tgrelid and w.name = g.tgname)
  loop
    execute format('drop trigger %I on %s', r.name, r.relation);
  end loop;
  for r in
    select w.relation::regclass as relation, w.name, w.statement
      from :schema.capture_triggers(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged) w where not w.is_there
  loop
    execute r.statement;
    execute format('alter table %s enable trigger %I', r.relation, r.name);
  end loop;
end
$aftercommit$;
