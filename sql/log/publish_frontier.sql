-- grants: run
-- The frontier as other processes, standbys and bridges may rely on it. It never moves back within an epoch.
create or replace function :schema.publish_frontier(p_epoch integer, p_frontier bigint, p_witness bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  -- Nobody has looked yet whether this is the same history: what was final in another one is not published here.
  if exists (select from :schema.log_state where identity <> :schema.log_identity()) then return false; end if;
  update :schema.log_state
     set frontier = p_frontier, witness = greatest(witness, p_witness)
   where epoch = p_epoch and frontier < p_frontier;
  if not found then return false; end if;
  insert into :schema.frontier_marks (frontier)
  select p_frontier
   where not exists (select from :schema.frontier_marks where at > clock_timestamp() - interval '1 minute')
  on conflict do nothing;
  return true;
end
$aftercommit$;
