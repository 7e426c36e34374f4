-- grants: run
-- Planned once, when there may be nothing yet: every look is by index.
create or replace function :schema.workflow_load(
  p_type text, p_id text, p_lock boolean, p_known bigint, p_known_position bigint, p_state_version integer,
  p_input_id text default null, p_up_to bigint default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
begin
  return :schema.load_step(p_type, p_id, p_lock, p_known, p_known_position, p_state_version, p_input_id, p_up_to, true);
end
$aftercommit$;
