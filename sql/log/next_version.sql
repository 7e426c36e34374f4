-- grants: none
-- Takes the next version of a stream. The row lock comes before nextval, so that inside a stream the order of versions
-- is the order of positions.
create or replace function :schema.next_version(p_aggregate_type text, p_aggregate_id text, p_adopted boolean) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_version bigint;
  v_before bigint := 0;
begin
  update :schema.streams set version = version + 1
   where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id
  returning version into v_version;
  if not found then
    if p_adopted then
      select count(*) into v_before from :schema.events
       where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
    end if;
    insert into :schema.streams as s (aggregate_type, aggregate_id, version)
    values (p_aggregate_type, p_aggregate_id, v_before + 1)
    on conflict (aggregate_type, aggregate_id) do update set version = s.version + 1
    returning version into v_version;
  end if;
  return v_version;
end
$aftercommit$;
