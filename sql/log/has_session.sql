-- grants: none
-- Whether a setting of the session says something about the events it appends. Inlined by the planner, and therefore without
-- settings of its own.
create or replace function :schema.has_session() returns boolean
language sql stable as $aftercommit$
  select pg_catalog.concat(
    pg_catalog.current_setting('aftercommit.user_id', true), pg_catalog.current_setting('aftercommit.tenant', true),
    pg_catalog.current_setting('aftercommit.correlation_id', true), pg_catalog.current_setting('aftercommit.causation_id', true),
    pg_catalog.current_setting('aftercommit.traceparent', true), pg_catalog.current_setting('aftercommit.actor_type', true),
    pg_catalog.current_setting('aftercommit.acting_for', true), pg_catalog.current_setting('aftercommit.depth', true))
    operator(pg_catalog.<>) ''
$aftercommit$;
