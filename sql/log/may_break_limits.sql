-- grants: none
-- Whether an event has to be looked at by check_event before it is written: false for most, by the sizes in the headers of
-- their parts. A compressed part says nothing about its size, and 64 levels of JSON take more than 500 bytes. Inlined by the
-- planner, and therefore without settings of its own.
create or replace function :schema.may_break_limits(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb, p_extra jsonb)
returns boolean
language sql stable as $aftercommit$
  select pg_catalog.pg_column_size(p_payload) > 500 and (pg_catalog.pg_column_size(p_payload) > 16000
      or pg_catalog.jsonb_path_exists(p_payload, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")'))
    or pg_catalog.pg_column_size(p_metadata) > 500
    or pg_catalog.pg_column_size(p_extra) > 255
    or pg_catalog.starts_with(p_type, 'aftercommit.')
    or pg_catalog.octet_length(p_aggregate_type) > 255 or pg_catalog.octet_length(p_aggregate_id) > 255
    or p_aggregate_type operator(pg_catalog.=) '' or p_aggregate_id operator(pg_catalog.=) ''
    or pg_catalog.pg_column_compression(p_payload) is not null
    or pg_catalog.pg_column_compression(p_metadata) is not null
    or pg_catalog.pg_column_compression(p_extra) is not null
$aftercommit$;
