-- grants: emit
-- A value as jsonb, JSON null for null. An escaped NUL in json, which jsonb cannot hold, stays escaped as text; null for a value that
-- jsonb cannot hold at all.
create or replace function :schema.capture_value(p_value anyelement) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return coalesce(to_jsonb(p_value), 'null');
exception when data_exception or program_limit_exceeded then
  begin
    return regexp_replace(to_json(p_value)::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g')::jsonb;
  exception when data_exception or program_limit_exceeded then
    return null;
  end;
end
$aftercommit$;
