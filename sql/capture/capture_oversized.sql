-- grants: none
-- The columns to leave out: those that nest deeper than the limit of the log, then the largest, so that no image of the row is
-- longer than the limit. Keys stay. Null where nothing has to go.
create or replace function :schema.capture_oversized(p_old jsonb, p_new jsonb, p_keys text[], p_limit bigint) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_too_deep jsonpath;
  v_names text[];
  r record;
begin
  select format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', max_nesting - 1)::jsonpath
    into v_too_deep from :schema.settings;
  v_names := array(
    select distinct c.key
      from (select * from jsonb_each(p_old) union all select * from jsonb_each(p_new)) c
     where c.key <> all (p_keys) and jsonb_path_exists(c.value, v_too_deep));
  for r in
    select c.key as name, max(octet_length(c.value::text)) as size
      from (select * from jsonb_each(p_old) union all select * from jsonb_each(p_new)) c
     where c.key <> all (p_keys || v_names)
     group by c.key
     order by size desc, name
  loop
    exit when coalesce(octet_length((p_old - v_names)::text), 0) <= p_limit
      and coalesce(octet_length((p_new - v_names)::text), 0) <= p_limit;
    v_names := v_names || r.name;
  end loop;
  return nullif(v_names, '{}');
end
$aftercommit$;
