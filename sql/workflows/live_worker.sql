-- grants: none
-- The worker, if it is alive: locked, so that nobody forgets it while claims in its name are not yet to be seen.
create or replace function :schema.live_worker(p_worker text) returns text
language plpgsql as $aftercommit$
declare
  v_worker text;
begin
  select worker into v_worker from :schema.delivery_workers
   where worker = p_worker and lease_until > clock_timestamp() for key share;
  return v_worker;
end
$aftercommit$;
