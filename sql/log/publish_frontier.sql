-- grants: run
-- Publishes the frontier, on which other processes, standbys and bridges rely. It never moves back within an epoch. False
-- tells the caller to run check_log: the epoch is another one, or the sequence, the witness or the identity of the server
-- does not agree with what was published before or with the frontier to publish. Nothing is published then. The witness counts
-- where it stands below the frontier and holds an event.
create or replace function :schema.publish_frontier(p_epoch integer, p_frontier bigint, p_witness bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_state record;
  v_witness_id text;
begin
  select * into v_state from :schema.log_state;
  if v_state.epoch <> p_epoch or v_state.identity <> :schema.log_identity()
     or greatest(v_state.frontier, p_frontier) > (select case when is_called then last_value else last_value - 1 end from :schema.positions)
     or :schema.witness_is_gone(v_state.witness, v_state.witness_id, v_state.kept_from)
  then
    return false;
  end if;
  if p_witness > v_state.witness and p_witness <= p_frontier then
    select id into v_witness_id from :schema.events where position = p_witness;
  end if;
  update :schema.log_state
     set frontier = p_frontier, published_at = clock_timestamp(),
         witness_id = coalesce(v_witness_id, witness_id),
         witness = case when v_witness_id is null then witness else p_witness end
   where epoch = p_epoch and frontier < p_frontier;
  if not found then return true; end if;
  insert into :schema.frontier_marks (frontier)
  select p_frontier
   where not exists (select from :schema.frontier_marks where at > clock_timestamp() - interval '1 minute')
  on conflict do nothing;
  return true;
end
$aftercommit$;
