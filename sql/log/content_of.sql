-- grants: none
-- The hash of what an event says, by which a repetition under its id is told from another event. Times and metadata do not
-- count: a sender that builds its event again stamps it anew. Inlined by the planner, and so without settings of its own.
create or replace function :schema.content_of(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_tenant text, p_payload jsonb, p_changes jsonb)
returns bytea
language sql stable as $aftercommit$
  select pg_catalog.substring(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.jsonb_build_array(
    p_type, p_aggregate_type, p_aggregate_id, p_tenant, p_payload, p_changes)::pg_catalog.text, 'UTF8')), 1, 16)
$aftercommit$;
