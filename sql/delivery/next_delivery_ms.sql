-- grants: run
-- In how many milliseconds something of the registered names is due; null when nothing waits. A row that is due
-- already and was not claimed waits for a limit, an earlier row of its key or a dead worker: soon is early enough.
create or replace function :schema.next_delivery_ms(p_names jsonb) returns double precision
language plpgsql set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_next timestamptz;
  v_lanes integer[] := array(select :schema.due_lanes(p_names, 500));
begin
  -- There may be more lanes than were looked at.
  if array_position(v_lanes, null) is not null then return 0; end if;
  -- A destination that rests or is probed may be well before its time, and nobody is notified: a look every second finds it.
  select min(greatest(f.run_at, case when t.open_until > v_now or t.resting_until > v_now
                                     then least(greatest(t.open_until, t.resting_until), v_now + interval '1 second') end))
    into v_next
    from unnest(v_lanes) b
    join :schema.delivery_lanes l on l.lane = b
    join jsonb_to_recordset(p_names) as n(kind text, name text) on n.kind = l.kind and n.name = l.name
    left join :schema.delivery_pauses p on p.kind = l.kind and p.name = l.name
    left join :schema.destinations t on t.destination = l.destination
   cross join lateral (
     select d.run_at from :schema.deliveries d where d.lane = l.lane and d.token is null order by d.run_at, d.id limit 1) f
   where p.kind is null and not coalesce(t.paused, false);
  -- Of any name: at worst one look for nothing.
  v_next := least(v_next, (
    select d.run_at from :schema.deliveries d where d.segment = 0 and d.run_at > v_now and d.token is null order by d.run_at limit 1));
  -- Of nothing and zero, greatest() would make zero.
  return case when v_next is not null then greatest(extract(epoch from v_next - v_now) * 1000, 0) end;
end
$aftercommit$;
