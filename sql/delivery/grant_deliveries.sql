-- grants: run
-- How many of p_wanted calls a destination can take now. Granted calls are taken from its bucket and counted as running at
-- once; the row of the destination stays locked until the claim has ended, so limits hold for all processes together.
-- p_places: calls that the worker could begin at once. Calls that it merely held would be missing to other workers.
create or replace function :schema.grant_deliveries(
  p_worker text, p_destination text, p_wanted integer, p_most integer, p_places integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  d record;
  v_granted integer := least(p_wanted, p_most);
  v_burst double precision;
  v_tokens double precision;
begin
  if p_destination = '' then return greatest(v_granted, 0); end if;
  select * into d from :schema.destinations where destination = p_destination;
  if not found then return greatest(v_granted, 0); end if;
  if d.paused or d.resting_until > clock_timestamp() then return 0; end if;
  if d.concurrency is null and d.rate is null and d.opened_at is null then return greatest(v_granted, 0); end if;
  select * into d from :schema.destinations where destination = p_destination for update skip locked;
  if not found or d.open_until > clock_timestamp() then return 0; end if;
  -- Half open: one probe, and no other until it had time to answer.
  if d.opened_at is not null then v_granted := 1; end if;
  if d.concurrency is not null then
    -- A limit that somebody set takes the place of the one that every process has for itself.
    select least(case when d.opened_at is null then p_wanted else 1 end, p_places,
                 d.concurrency - coalesce(sum((w.running ->> p_destination)::integer), 0)) into v_granted
      from :schema.delivery_workers w
      join :schema.live_leases l on l.lease = w.worker;
  end if;
  if d.rate is not null then
    -- A bucket that cannot hold one would never give one.
    v_burst := greatest(coalesce(d.burst, d.rate), 1);
    v_tokens := least(v_burst, coalesce(d.tokens, v_burst)
      + d.rate * greatest(extract(epoch from clock_timestamp() - d.refilled_at), 0));
    v_granted := least(v_granted, floor(v_tokens)::integer);
  end if;
  if v_granted <= 0 then return 0; end if;
  update :schema.destinations
     set tokens = v_tokens - v_granted,
         refilled_at = clock_timestamp(),
         open_until = case when opened_at is null then open_until else clock_timestamp() + interval '30 seconds' end,
         probing = opened_at is not null
   where destination = p_destination;
  if d.concurrency is not null then
    update :schema.delivery_workers
       set running = running || jsonb_build_object(p_destination, coalesce((running ->> p_destination)::integer, 0) + v_granted)
     where worker = p_worker;
  end if;
  return v_granted;
end
$aftercommit$;
