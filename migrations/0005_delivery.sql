-- why: durable work: what is to be done, who is doing it, and what a destination can take.
-- locks: letters for a moment, to add columns that default to null; every other object here is new.
-- older: keep

create sequence :schema.delivery_ids as bigint;

-- What work is grouped by: whoever claims takes from lanes in turn, so that neither a destination nor a tenant with
-- much to do keeps the others waiting. A lane is a number because it leads the index of every row.
create table :schema.delivery_lanes (
  lane integer generated always as identity primary key,
  kind text not null,
  name text not null,
  destination text not null default '',
  tenant text not null default '',
  priority smallint not null default 0,
  unique (kind, name, destination, tenant, priority)
);
create index delivery_lanes_name on :schema.delivery_lanes (kind, name, lane);

-- One thing to do. Rows are deleted when they are done, so they live in segments: new work goes into the current one, a
-- segment that has run empty is truncated (rotate_deliveries), and nothing is left for vacuum, whatever holds it back.
-- Segment 0 does not rotate: what is due later, failed before, or must be unique.
create table :schema.deliveries (
  segment smallint not null,
  id bigint not null,
  lane integer not null,
  -- Whose dead letter it would be.
  owner text not null,
  -- What order goes by. `ordered`: waits for those before it with the same kind, name and key, in whatever lane.
  key text,
  ordered boolean not null default false,
  -- At most one at a time for a lane; always in segment 0, which can enforce it.
  unique_key text,
  payload jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  run_at timestamptz not null default clock_timestamp(),
  -- Counted when claimed.
  attempts integer not null default 0,
  first_attempt_at timestamptz,
  last_attempt_at timestamptz,
  error jsonb,
  -- Who works on it: no settling without the token of this very claim. Neither column is in an index: a claim is a HOT update.
  token bigint,
  worker text,
  -- Its worker wrote down that it starts this one alone: if the process ends now, it was this one.
  alone boolean not null default false,
  -- The dead letter it was made from again.
  letter bigint,
  primary key (segment, id)
) partition by list (segment);
create index deliveries_due on :schema.deliveries (lane, run_at, id);
create index deliveries_order on :schema.deliveries (key, lane, id) where ordered;

create table :schema.deliveries_0 partition of :schema.deliveries for values in (0)
  with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create table :schema.deliveries_1 partition of :schema.deliveries (check (unique_key is null)) for values in (1) with (fillfactor = 50);
create table :schema.deliveries_2 partition of :schema.deliveries (check (unique_key is null)) for values in (2) with (fillfactor = 50);
create table :schema.deliveries_3 partition of :schema.deliveries (check (unique_key is null)) for values in (3) with (fillfactor = 50);
create table :schema.deliveries_4 partition of :schema.deliveries (check (unique_key is null)) for values in (4) with (fillfactor = 50);
-- Which of what was put off is due, and when the next one is.
create index deliveries_0_time on :schema.deliveries_0 (run_at);
create unique index deliveries_0_unique on :schema.deliveries_0 (lane, unique_key) where unique_key is not null;
create trigger bell after insert on :schema.deliveries for each statement execute function :schema.ring();

create table :schema.delivery_state (
  one_row boolean primary key default true check (one_row),
  segment smallint not null default 1,
  -- The last id when the segment became the current one.
  since_id bigint not null default 0,
  -- Counts changes that workers must have seen before somebody may rely on them: pauses and cancellations.
  version bigint not null default 0
) with (fillfactor = 50);
insert into :schema.delivery_state default values;

-- One lease for everything a process works on. A row claimed by a worker that is not here, or whose lease ran out, is free.
create table :schema.delivery_workers (
  worker text primary key,
  process text not null,
  lease_until timestamptz not null,
  -- It works only while its process holds a lock, so without that it is gone. Behind a pooler no lock can be held.
  locks boolean not null default false,
  -- The version of delivery_state that it has obeyed.
  seen bigint not null default 0,
  -- How many it works on for each destination that has a limit; a worker that is gone counts no more.
  running jsonb not null default '{}',
  -- Kind and name of what it can do: work that no live worker names is an orphan.
  names jsonb not null default '[]',
  started_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- Names that are not worked on for now.
create table :schema.delivery_pauses (
  kind text not null,
  name text not null,
  who text not null,
  reason text,
  at timestamptz not null default clock_timestamp(),
  primary key (kind, name)
);

-- What a destination can take, shared by all processes. Without a row there is no limit and no trouble.
create table :schema.destinations (
  destination text primary key,
  -- How many at a time, and how many a second with which burst; null for no limit.
  concurrency integer,
  rate double precision,
  burst double precision,
  tokens double precision,
  refilled_at timestamptz,
  -- The circuit: failures in a row; open until then; opened again so often; whether somebody probes it.
  failures integer not null default 0,
  opened_at timestamptz,
  open_until timestamptz,
  reopened integer not null default 0,
  probing boolean not null default false,
  -- Asked to be left alone until then.
  resting_until timestamptz,
  paused boolean not null default false,
  who text,
  reason text,
  changed_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- Everything needed to make the delivery of a dead letter again, and the one that was made.
alter table :schema.letters add column delivery jsonb;
alter table :schema.letters add column placed bigint;
create index letters_to_place on :schema.letters (position) where status = 'redriving' and delivery is not null and placed is null;

-- Makes the lane if it is new. A statement of its own: a lane may outlive the transaction that first wanted it.
create function :schema.delivery_lane(
  p_kind text, p_name text, p_destination text, p_tenant text, p_priority smallint)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_lane integer;
begin
  loop
    select lane into v_lane from :schema.delivery_lanes
     where kind = p_kind and name = p_name and destination = p_destination and tenant = p_tenant and priority = p_priority;
    if found then return v_lane; end if;
    insert into :schema.delivery_lanes (kind, name, destination, tenant, priority)
    values (p_kind, p_name, p_destination, p_tenant, p_priority)
    on conflict do nothing
    returning lane into v_lane;
    if found then return v_lane; end if;
  end loop;
end
$aftercommit$;

-- Adds work in the caller's transaction; what is unique and there already is left alone. Returns what was added. With a
-- worker, it comes as already claimed by it: an attempt that began before there was a row.
-- Holding the lock that an append holds makes arming readers wait for this transaction too, so no wake-up is lost.
create function :schema.add_deliveries(p_rows jsonb) returns table (segment smallint, id bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_column
begin
  perform pg_sequence_last_value(:positions_literal::regclass);
  if jsonb_path_exists(p_rows, '$[*].worker') then
    -- Locked, so that nobody forgets a worker while its claims are not yet to be seen. One that is forgotten or never was is
    -- noted as gone: a claim of somebody unknown would be looked for by nobody.
    perform from :schema.delivery_workers
      where worker in (select r.worker from jsonb_to_recordset(p_rows) as r(worker text)) for key share;
    insert into :schema.delivery_workers (worker, process, lease_until)
    select distinct r.worker, '', '-infinity'::timestamptz from jsonb_to_recordset(p_rows) as r(worker text) where r.worker is not null
    on conflict do nothing;
  end if;
  return query
  insert into :schema.deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, run_at, attempts,
                                  first_attempt_at, last_attempt_at, error, token, worker)
  select case when r.unique_key is not null or r.run_at is not null or r.delay_ms > 2000 or r.attempts > 0 then 0 else s.segment end,
         nextval(:delivery_ids_literal::regclass), r.lane, r.owner, r.key, coalesce(r.ordered and r.key is not null, false),
         r.unique_key, r.payload,
         coalesce(r.run_at, clock_timestamp() + make_interval(secs => coalesce(r.delay_ms, 0) / 1000.0)), coalesce(r.attempts, 0),
         case when r.attempts > 0 then clock_timestamp() - make_interval(secs => coalesce(r.since_first_ms, 0) / 1000.0) end,
         case when r.attempts > 0 then clock_timestamp() end, r.error,
         r.token, r.worker
    from jsonb_to_recordset(p_rows) as r(lane integer, owner text, key text, ordered boolean, unique_key text, payload jsonb,
         run_at timestamptz, delay_ms double precision, attempts integer, since_first_ms double precision, error jsonb, token bigint,
         worker text),
         :schema.delivery_state s
  on conflict do nothing
  returning segment, id;
end
$aftercommit$;

-- Lanes that have rows, one probe each, never a scan of the rows themselves: so many after p_after, then from the
-- beginning. Whoever asks again with the last lane it got sees all of them in turn.
create function :schema.busy_lanes(p_after integer, p_most integer) returns setof integer
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with recursive later(lane, n) as (
    (select lane, 1 from :schema.deliveries where lane > p_after order by lane limit 1)
    union all
    select (select d.lane from :schema.deliveries d where d.lane > b.lane order by d.lane limit 1), b.n + 1
      from later b
     where b.lane is not null and b.n < p_most),
  earlier(lane, n) as (
    (select lane, 1 from :schema.deliveries where lane <= p_after order by lane limit 1)
    union all
    select (select d.lane from :schema.deliveries d where d.lane > b.lane and d.lane <= p_after order by d.lane limit 1), b.n + 1
      from earlier b
     where b.lane is not null and b.n < p_most)
  select found.lane
    from (select lane from later union all select lane from earlier) found
   where found.lane is not null
   limit p_most
$aftercommit$;

-- Lanes that may have something due, found by probes and never by a scan of their rows: those of the rotating segments,
-- which hold little else, and those of the oldest rows that were put off and are due. Where that is not all, others may be
-- hidden behind lanes that are held back or of foreign names: then the registered ones that are not paused are looked at one
-- by one. With a null when there may be still more.
--
-- This and the functions below keep one plan each, which goes along the index by lane step by step: rows come and go too
-- fast for statistics to be right, a plan for every call would take longer than the look itself, and one that sorts or
-- joins whole tables would look at everything that is scheduled.
create function :schema.due_lanes(p_names jsonb, p_most integer) returns setof integer
language plpgsql set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  -- From a little before the first to a little after the last, so that those at the ends are met as often as others.
  v_begin integer := floor(random() * (coalesce((select max(lane) from :schema.delivery_lanes), 0) + 100))::integer - 50;
  v_rotating integer[];
  v_put_off integer[];
  v_known integer[] := '{}';
  v_more boolean;
begin
  v_rotating := array(
    with recursive later(lane, n) as (
      (select lane, 1 from :schema.deliveries where segment in (1, 2, 3, 4) and lane > v_begin order by lane limit 1)
      union all
      select (select d.lane from :schema.deliveries d where d.segment in (1, 2, 3, 4) and d.lane > b.lane order by d.lane limit 1), b.n + 1
        from later b
       where b.lane is not null and b.n < p_most),
    earlier(lane, n) as (
      (select lane, 1 from :schema.deliveries where segment in (1, 2, 3, 4) and lane <= v_begin order by lane limit 1)
      union all
      select (select d.lane from :schema.deliveries d
               where d.segment in (1, 2, 3, 4) and d.lane > b.lane and d.lane <= v_begin order by d.lane limit 1), b.n + 1
        from earlier b
       where b.lane is not null and b.n < p_most)
    select found.lane
      from (select lane from later union all select lane from earlier) found
     where found.lane is not null
     limit p_most);
  v_put_off := array(
    select d.lane from :schema.deliveries d
     where d.segment = 0 and d.run_at <= v_now and d.token is null
     order by d.run_at
     limit 300);
  v_more := cardinality(v_rotating) = p_most;
  if v_more or cardinality(v_put_off) = 300 then
    v_known := array(
      select l.lane
        from (select n.kind, n.name
                from jsonb_to_recordset(p_names) as n(kind text, name text)
                left join :schema.delivery_pauses p on p.kind = n.kind and p.name = n.name
               where p.kind is null
               -- In any order: one with many lanes must not be first every time.
               order by random()) n
       cross join lateral (
         (select l.lane
            from :schema.delivery_lanes l
            left join :schema.destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane > v_begin and t.destination is null
           order by l.lane
           limit 2000)
         union all
         (select l.lane
            from :schema.delivery_lanes l
            left join :schema.destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane <= v_begin and t.destination is null
           order by l.lane
           limit 2000)) l
       limit 2000);
    v_more := v_more or cardinality(v_known) = 2000;
    v_known := array(
      select u.lane
        from unnest(v_known) as u(lane)
       cross join lateral (
         select from :schema.deliveries d
          where d.lane = u.lane and d.run_at <= v_now and d.token is null
          order by d.run_at, d.id
          limit 1) d
       limit p_most);
    v_more := v_more or cardinality(v_known) = p_most;
  end if;
  return query select distinct u.lane from unnest(v_rotating || v_put_off || v_known) as u(lane);
  if v_more then return next null; end if;
end
$aftercommit$;

-- What may be done next in a lane with an order: of each key that has something due here the first one, unless it is in
-- another lane of the name or a dead letter stands before it, and whatever has no order.
create function :schema.first_in_turn(p_lane integer, p_now timestamptz, p_most integer)
returns table (segment smallint, id bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $aftercommit$
#variable_conflict use_column
declare
  v_of record;
begin
  -- Where the walk below begins and ends: most names have one lane, and then it looks no further.
  select l.kind, l.name,
         (select min(s.lane) from :schema.delivery_lanes s where s.kind = l.kind and s.name = l.name) as first_lane,
         (select max(s.lane) from :schema.delivery_lanes s where s.kind = l.kind and s.name = l.name) as last_lane
    into v_of
    from :schema.delivery_lanes l
   where l.lane = p_lane;
  return query
  select c.segment, c.id
    from (select h.segment, h.id, h.run_at
            from (select distinct w.key
                    -- Along the index by lane: what is looked at here must not be more than what is due in this one.
                    from (select d.key, d.ordered
                            from :schema.deliveries d
                           where d.lane = p_lane and d.token is null and d.run_at <= p_now
                           order by d.run_at, d.id
                          offset 0) w
                   where w.ordered) k
           cross join lateral (
             -- The first of the key in each lane, from lane to lane: other names may have much of the same key.
             with recursive heads as (
               (select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                  from :schema.deliveries e
                 where e.ordered and e.key = k.key and e.lane >= v_of.first_lane and e.lane <= v_of.last_lane
                 order by e.lane, e.id
                 limit 1)
               union all
               select n.segment, n.id, n.lane, n.owner, n.token, n.run_at
                 from heads b
                cross join lateral (
                  select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                    from :schema.deliveries e
                   where e.ordered and e.key = k.key and e.lane > b.lane and e.lane <= v_of.last_lane
                   order by e.lane, e.id
                   limit 1) n
                where b.lane < v_of.last_lane)
             select f.segment, f.id, f.lane, f.owner, f.token, f.run_at
               from heads f
               join :schema.delivery_lanes s on s.lane = f.lane
              where s.kind = v_of.kind and s.name = v_of.name
              order by f.id
              limit 1) h
           where h.lane = p_lane
             and h.token is null
             and h.run_at <= p_now
             and not exists (
               select from :schema.letters x
                where x.kind = v_of.kind and x.owner = h.owner and x.key = k.key and x.parks
                  and (x.status = 'dead' or x.status = 'redriving' and x.delivery is not null and x.placed is null))
          union all
          (select d.segment, d.id, d.run_at
             from :schema.deliveries d
            where d.lane = p_lane and not d.ordered and d.token is null and d.run_at <= p_now
            order by d.run_at, d.id
            limit p_most)) c
   order by c.run_at, c.id
   limit p_most;
end
$aftercommit$;

-- How much of what is wanted a destination can take now. What is granted is taken from its bucket and counted as running
-- at once; the row stays locked until the claim has ended, so limits hold for all processes together.
-- p_places: how many the worker could begin at once. What it only held would be missing to those who could use it.
create function :schema.grant_deliveries(
  p_worker text, p_destination text, p_wanted integer, p_most integer, p_places integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  d record;
  v_granted integer := least(p_wanted, p_most);
  v_burst double precision;
  v_tokens double precision;
begin
  if p_destination = '' then return p_wanted; end if;
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
     where w.lease_until > clock_timestamp();
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

-- Takes due work of the registered names, lanes in turn, higher priorities first. Rows of a worker that is gone are taken
-- one at a time, if p_suspects, and come with `suspect`: one of them may be what ended it.
-- p_token is new with every claim, and chosen by the worker: it knows what to give back when the answer gets lost.
-- p_running: how many it works on now for each destination, of which it takes at most p_most. p_places: how many it could
-- begin at once. p_hanging: destinations that answer so slowly that it wants no more for them now.
create function :schema.claim_deliveries(
  p_worker text, p_token bigint, p_names jsonb, p_limit integer, p_suspects boolean, p_running jsonb, p_most integer,
  p_places integer default 10000, p_hanging jsonb default '[]')
returns table (segment smallint, id bigint, lane integer, owner text, key text, payload text, attempts integer,
               created_ms double precision, token bigint, suspect boolean, letter bigint)
language plpgsql set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
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
  perform from :schema.delivery_workers where worker = p_worker and lease_until > v_now for key share;
  if not found then
    raise exception 'The lease of this worker ran out, so nothing was claimed.' using errcode = 'AC010';
  end if;
  if p_running is not null then
    update :schema.delivery_workers set running = p_running where worker = p_worker and running <> p_running;
  end if;

  if p_suspects and exists (select from :schema.delivery_workers where lease_until <= v_now) then
    -- The first of each destination: one that takes nothing now must not keep the others waiting. What was claimed was due,
    -- so what is due later is not looked at. Who is alive is asked with the same snapshot: claims may be younger than this one.
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
            and not exists (select from :schema.delivery_workers w where w.worker = d.worker and w.lease_until > v_now)
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
       and (l.destination = '' or t.concurrency is not null or coalesce((p_running ->> l.destination)::integer, 0) < p_most)
       and not p_hanging ? l.destination
       and exists (select from :schema.deliveries d
                    where d.lane = l.lane and d.run_at <= v_now and d.token is null)
     group by l.priority
     order by l.priority desc
  loop
    exit when v_left <= 0;
    return query
    with turns as materialized (
      -- What waits for an earlier one of its key is not wanted: it would use up what others could be granted.
      select t.lane, due.ordered, :schema.grant_deliveries(p_worker, t.destination,
               case
                 when t.destination = '' then t.share
                 when due.ordered then (select count(*)::integer from :schema.first_in_turn(t.lane, v_now, t.share))
                 else due.count
               end,
               p_most - coalesce((p_running ->> t.destination)::integer, 0) - (t.nth - 1) * t.share, p_places) as granted
        from (select l.lane, l.destination,
                     greatest(1, v_left / cardinality(v_level.lanes)) as share,
                     -- Of one destination too, any lane may be the first, and have what there is to have.
                     row_number() over (partition by l.destination order by u.at)::integer as nth
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

-- In how many milliseconds something of the registered names is due; null when nothing waits. What is due already and was
-- not claimed waits for a limit, an earlier one of its key or a dead worker: soon is early enough.
create function :schema.next_delivery_ms(p_names jsonb) returns double precision
language plpgsql set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_next timestamptz;
  v_lanes integer[] := array(select :schema.due_lanes(p_names, 500));
begin
  -- There may be more lanes than were looked at.
  if array_position(v_lanes, null) is not null then return 0; end if;
  -- What rests or is only probed may be well again before its time, which nobody is told of: looked for every second.
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
  -- Whoever's it is: at worst one look for nothing.
  v_next := least(v_next, (
    select d.run_at from :schema.deliveries d where d.segment = 0 and d.run_at > v_now and d.token is null order by d.run_at limit 1));
  -- Of nothing and zero, greatest() would make zero.
  return case when v_next is not null then greatest(extract(epoch from v_next - v_now) * 1000, 0) end;
end
$aftercommit$;

-- Whether something of the registered names could be done now but for a limit, a circuit or a rest of its destination. What
-- is paused, or stands behind a dead letter, waits for somebody, and may wait for ever.
-- Every lane is looked at: whoever asks ends when the answer is no.
create function :schema.has_due_deliveries(p_names jsonb) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
begin
  return exists (
    select from jsonb_to_recordset(p_names) as n(kind text, name text)
      join :schema.delivery_lanes l on l.kind = n.kind and l.name = n.name
      left join :schema.delivery_pauses p on p.kind = l.kind and p.name = l.name
      left join :schema.destinations t on t.destination = l.destination and t.paused
     where p.kind is null and t.destination is null
       and case
             when not exists (select from :schema.deliveries d where d.lane = l.lane and d.run_at <= v_now and d.token is null) then false
             when exists (select from :schema.deliveries d
                           where d.lane = l.lane and d.run_at <= v_now and d.token is null and not d.ordered) then true
             else exists (select from :schema.first_in_turn(l.lane, v_now, 1))
           end);
end
$aftercommit$;

-- Empties segments that have run dry and makes the next one current. TRUNCATE needs an exclusive lock for a moment: it is
-- asked for with a short timeout, and the segment is looked at again under it. Returns what was done.
create function :schema.rotate_deliveries(p_least bigint) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '30ms' as $aftercommit$
declare
  v_state record;
  v_next smallint;
  v_last bigint := coalesce(pg_sequence_last_value(:delivery_ids_literal::regclass), 0);
  v_empty boolean;
  v_done text[] := '{}';
begin
  -- The second look under the lock must see what was committed meanwhile.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Segments are only rotated in a transaction at READ COMMITTED.';
  end if;
  select * into v_state from :schema.delivery_state for update skip locked;
  if not found then return v_done; end if;
  for v_segment in 1 .. 4 loop
    continue when v_segment = v_state.segment
      or pg_relation_size(format('%I.deliveries_%s', :schema_literal, v_segment)::regclass) = 0;
    execute format('select not exists (select from %I.deliveries_%s)', :schema_literal, v_segment) into v_empty;
    continue when not v_empty;
    begin
      execute format('lock table %I.deliveries_%s in access exclusive mode', :schema_literal, v_segment);
      execute format('select not exists (select from %I.deliveries_%s)', :schema_literal, v_segment) into v_empty;
      if v_empty then
        execute format('truncate %I.deliveries_%s', :schema_literal, v_segment);
        v_done := v_done || format('truncated %s', v_segment);
      end if;
    exception when lock_not_available then
      null;
    end;
  end loop;
  v_next := v_state.segment % 4 + 1;
  if v_last - v_state.since_id >= p_least
     and pg_relation_size(format('%I.deliveries_%s', :schema_literal, v_next)::regclass) = 0 then
    update :schema.delivery_state set segment = v_next, since_id = v_last;
    v_done := v_done || format('current %s', v_next);
  end if;
  return v_done;
end
$aftercommit$;

revoke all on all functions in schema :schema from public;
