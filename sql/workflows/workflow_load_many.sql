-- grants: run
-- Several instances at once, as [type, id, known version, known position, state version, input id] each: what workflow_load
-- says of them, null for those that somebody else has now. A list as JSON text.
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
    v_all := v_all || ',' || coalesce(:schema.load_step(v_one ->> 0, v_one ->> 1, true, (v_one ->> 2)::bigint,
      (v_one ->> 3)::bigint, (v_one ->> 4)::integer, v_one ->> 5, null, false), 'null');
  end loop;
  return '[' || substr(v_all, 2) || ']';
end
$aftercommit$;
