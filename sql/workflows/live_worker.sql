-- grants: none
-- The worker, if it is alive: locked, so that nobody forgets it while claims in its name are not yet to be seen.
create or replace function :schema.live_worker(p_worker text) returns text
language plpgsql as $aftercommit$
declare
  v_worker text;
begin
  select w.worker into v_worker from :schema.delivery_workers w
   where w.worker = p_worker and exists (select from :schema.live_leases l where l.lease = p_worker) for key share;
  return v_worker;
end
$aftercommit$;
