-- grants: run
-- Events of an instance in order, as one JSON list of {version, position, id, type, schema_version, payload}.
create or replace function :schema.workflow_events(p_type text, p_id text, p_after bigint, p_from bigint, p_to bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
begin
  return (
    select '[' || string_agg(format(
             '{"version":%s,"position":%s,"id":%s,"type":%s,"schema_version":%s,"payload":%s}', e.version, e.position, to_json(e.id), to_json(e.type),
             coalesce(e.metadata ->> 'schema_version', '1'), coalesce(e.payload, 'null')), ',' order by e.position) || ']'
      from :schema.events e
     where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position > p_after and e.version between p_from and p_to);
end
$aftercommit$;
