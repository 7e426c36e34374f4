-- grants: run
-- How many calls that wait in a process may become rows for other processes, by name: p_places for each other live worker
-- that names the work, less the due rows of these lanes that no worker has claimed.
create or replace function :schema.surplus_room(p_worker text, p_lanes jsonb, p_places integer)
returns table (kind text, name text, room integer)
language plpgsql stable set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_of record;
  v_room integer;
begin
  for v_of in select distinct a.kind, a.name from jsonb_to_recordset(p_lanes) as a(kind text, name text) loop
    select count(*)::integer * p_places into v_room
      from :schema.delivery_workers w
      join :schema.live_leases g on g.lease = w.worker
     where w.worker <> p_worker
       and w.names @> jsonb_build_array(jsonb_build_object('kind', v_of.kind, 'name', v_of.name));
    if v_room > 0 then
      select v_room - count(*)::integer into v_room
        from (select from jsonb_to_recordset(p_lanes) as a(kind text, name text, destination text, tenant text, priority smallint)
                join :schema.delivery_lanes l
                  on l.kind = a.kind and l.name = a.name and l.destination = a.destination and l.tenant = a.tenant and l.priority = a.priority
               cross join lateral (
                 select from :schema.deliveries d
                  where d.lane = l.lane and d.run_at <= v_now and d.token is null
                  order by d.run_at, d.id
                  limit v_room) d
               where a.kind = v_of.kind and a.name = v_of.name
               limit v_room) unclaimed;
    end if;
    return query select v_of.kind, v_of.name, v_room;
  end loop;
end
$aftercommit$;
