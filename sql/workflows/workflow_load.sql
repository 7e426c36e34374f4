-- grants: run
-- Loads an instance from what the caller knows on, and with p_lock locks it until the transaction ends. The answer is the
-- JSON object that load_step describes.
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
