-- grants: run
-- Takes due work of the registered names, lanes in turn, higher priorities first. Rows of a worker that is gone are taken
-- one at a time, if p_suspects, and come with `suspect`: one of them may be what ended it.
-- p_token is new with every claim, and chosen by the worker: it knows what to give back when the answer gets lost.
-- p_running: how many it works on now for each destination; kept for limits. p_shares: the same, and for each name without a
-- destination, with a space before it. It takes at most p_most for a destination and p_most_named for such a name. p_places:
-- how many it could begin at once. p_hanging: shares whose calls take so long that it wants no more for them now.
create or replace function :schema.claim_deliveries(
  p_worker text, p_token bigint, p_names jsonb, p_limit integer, p_suspects boolean, p_running jsonb, p_most integer,
  p_places integer default 10000, p_hanging jsonb default '[]', p_shares jsonb default '{}', p_most_named integer default 10000)
returns table (segment smallint, id bigint, lane integer, owner text, key text, payload text, attempts integer,
               created_ms double precision, token bigint, suspect boolean, letter bigint)
language plpgsql set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
#variable_conflict use_column
declare
  -- A variable, since a condition on clock_timestamp() itself cannot use an index.
  v_now timestamptz := clock_timestamp();
  v_left integer := p_limit;
  v_got integer;
  v_level record;
  v_suspect record;
begin
  -- Locked, so that nobody forgets this worker while its claim is not yet to be seen.
  perform from :schema.delivery_workers w
   where w.worker = p_worker and exists (select from :schema.live_leases l where l.lease = p_worker) for key share;
  if not found then
    raise exception 'The lease of this worker ran out, so nothing was claimed.' using errcode = 'AC010';
  end if;
  if p_running is not null then
    update :schema.delivery_workers set running = p_running where worker = p_worker and running <> p_running;
  end if;

  if p_suspects and exists (
    select from :schema.delivery_workers w where not exists (select from :schema.live_leases l where l.lease = w.worker)) then
    -- The first of each destination: one that takes nothing now must not keep the others waiting. A claimed row was due, so
    -- rows that are due later are not looked at. Who is alive is asked with the same snapshot: claims may be younger than this one.
    for v_suspect in
      select distinct on (l.destination) d.segment, d.id, d.token, l.destination
        from jsonb_to_recordset(p_names) as n(kind text, name text)
        join :schema.delivery_lanes l on l.kind = n.kind and l.name = n.name
        left join :schema.delivery_pauses p on p.kind = l.kind and p.name = l.name
        left join :schema.destinations t on t.destination = l.destination and t.paused
       cross join lateral (
         select d.segment, d.id, d.token
           from :schema.deliveries d
          where d.lane = l.lane and d.run_at <= v_now and d.token is not null
            and not exists (select from :schema.live_leases g where g.lease = d.worker)
          order by d.run_at, d.id
          limit 1) d
       where p.kind is null and t.destination is null
       order by l.destination, d.id
    loop
      perform from :schema.deliveries d
        where d.segment = v_suspect.segment and d.id = v_suspect.id and d.token = v_suspect.token
          for update skip locked;
      continue when not found;
      continue when :schema.grant_deliveries(p_worker, v_suspect.destination, 1, 1, 1) < 1;
      return query
      update :schema.deliveries d
         set token = p_token, worker = p_worker, alone = true, last_attempt_at = v_now,
             attempts = greatest(d.attempts + d.alone::integer, 1)
       where d.segment = v_suspect.segment and d.id = v_suspect.id
      returning d.segment, d.id, d.lane, d.owner, d.key, d.payload::text, d.attempts,
                extract(epoch from d.created_at)::double precision * 1000, p_token, true, d.letter;
      v_left := v_left - 1;
      exit;
    end loop;
  end if;

  for v_level in
    -- In any order: lanes that are held back must not be first every time.
    select l.priority, array_agg(l.lane order by random()) as lanes
      from :schema.due_lanes(p_names, 500) b
      join :schema.delivery_lanes l on l.lane = b
      join jsonb_to_recordset(p_names) as n(kind text, name text) on n.kind = l.kind and n.name = l.name
      left join :schema.delivery_pauses p on p.kind = l.kind and p.name = l.name
      left join :schema.destinations t on t.destination = l.destination
     where p.kind is null
       -- A destination that takes nothing now would use up the turns of others, with all its tenants.
       and not coalesce(t.paused or t.resting_until > v_now or t.open_until > v_now, false)
       and (t.concurrency is not null
            or case when l.destination = '' then coalesce((p_shares ->> (' ' || l.name))::integer, 0) < p_most_named
                    else coalesce((p_shares ->> l.destination)::integer, 0) < p_most end)
       and not p_hanging ? case when l.destination = '' then ' ' || l.name else l.destination end
       and exists (select from :schema.deliveries d
                    where d.lane = l.lane and d.run_at <= v_now and d.token is null)
     group by l.priority
     order by l.priority desc
  loop
    exit when v_left <= 0;
    return query
    with turns as materialized (
      -- A row that waits for an earlier one of its key is not wanted: it would use up the grant of others.
      select t.lane, due.ordered, :schema.grant_deliveries(p_worker, t.destination,
               case
                 when t.destination = '' then t.share
                 when due.ordered then (select count(*)::integer from :schema.first_in_turn(t.lane, v_now, t.share))
                 else due.count
               end,
               case when t.destination = '' then p_most_named else p_most end
                 - coalesce((p_shares ->> t.of)::integer, 0) - (t.nth - 1) * t.share, p_places) as granted
        from (select l.lane, l.destination, case when l.destination = '' then ' ' || l.name else l.destination end as of,
                     greatest(1, v_left / cardinality(v_level.lanes)) as share,
                     -- Of one destination too, any lane may be the first, and have what there is to have.
                     row_number() over (partition by l.destination, case when l.destination = '' then l.name end order by u.at)::integer as nth
                from unnest(v_level.lanes[1 : v_left]) with ordinality as u(lane, at)
                join :schema.delivery_lanes l on l.lane = u.lane) t
       cross join lateral (
         select count(*)::integer as count, coalesce(bool_or(d.ordered), false) as ordered
           from (select d.ordered
                   from :schema.deliveries d
                  where d.lane = t.lane and d.run_at <= v_now and d.token is null
                  order by d.run_at, d.id
                  limit t.share) d) due),
    picked as materialized (
      select d.segment, d.id
        from turns t
       cross join lateral (
         select d.segment, d.id
           from :schema.deliveries d
          where not t.ordered
            and not d.ordered
            and d.lane = t.lane
            and d.run_at <= v_now
            and d.token is null
          order by d.run_at, d.id
          limit t.granted
            for update skip locked) d
       where t.granted > 0
      union all
      select d.segment, d.id
        from turns t
       cross join lateral (
         select d.segment, d.id
           from :schema.first_in_turn(t.lane, v_now, t.granted) f
          cross join lateral (
            -- One, by its key: a join may read all rows where the plan was made before there were many.
            select d.segment, d.id
              from :schema.deliveries d
             where d.segment = f.segment and d.id = f.id and d.token is null
             limit 1
               for update skip locked) d
          limit t.granted) d
       where t.ordered and t.granted > 0)
    update :schema.deliveries d
       set token = p_token, worker = p_worker, alone = false, attempts = d.attempts + 1,
           first_attempt_at = coalesce(d.first_attempt_at, v_now), last_attempt_at = v_now
      from picked
     where d.segment = picked.segment and d.id = picked.id
    returning d.segment, d.id, d.lane, d.owner, d.key, d.payload::text, d.attempts,
              extract(epoch from d.created_at)::double precision * 1000, p_token, false, d.letter;
    get diagnostics v_got = row_count;
    v_left := v_left - v_got;
  end loop;
end
$aftercommit$;
