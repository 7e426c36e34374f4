-- grants: run
-- Loads several instances at once, given as {type, id, version, position, state_version, input_id}: the version and position
-- are those that the caller knows. Returns a JSON list of the answers of workflow_load, with null for each instance that
-- another transaction has locked.
create or replace function :schema.workflow_load_many(p_wanted jsonb) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
declare
  v_one jsonb;
  v_all text := '';
begin
  -- Counting costs less than a query over the elements.
  for n in 0 .. jsonb_array_length(p_wanted) - 1 loop
    v_one := p_wanted -> n;
    v_all := v_all || ',' || coalesce(:schema.load_step(v_one ->> 'type', v_one ->> 'id', true,
      (v_one ->> 'version')::bigint, (v_one ->> 'position')::bigint, (v_one ->> 'state_version')::integer,
      v_one ->> 'input_id', null, false), 'null');
  end loop;
  return '[' || substr(v_all, 2) || ']';
end
$aftercommit$;
