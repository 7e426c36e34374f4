-- why: workflows: their instances, snapshots, unique keys, inputs and schedules. Their histories are in the log.
-- locks: deliveries_0 for as long as an index on its timers takes, which are few; every other object here is new.
-- older: keep

create table :schema.workflow_instances (
  type text not null,
  id text not null,
  -- Of its last event; events of an instance are numbered 1, 2, … over all its lives.
  version bigint not null,
  -- Counts lives: one more with every continue-as-new.
  generation integer not null default 1,
  unique_key text,
  paused boolean not null default false,
  -- Events of the log may wait that came while it was paused: later ones go behind them.
  holds boolean not null default false,
  created_at timestamptz not null,
  last_event_at timestamptz not null,
  -- Of its last event: what lists go by.
  last_position bigint not null,
  completed_at timestamptz,
  -- Its state needs the log after this position.
  needed_after bigint not null,
  primary key (type, id)
) with (fillfactor = 70);
create index workflow_instances_recent on :schema.workflow_instances (type, last_position);

-- Who has a unique key. A table of its own: whoever comes second learns from the row who was first, and no statement fails.
create table :schema.workflow_keys (
  type text not null,
  unique_key text not null,
  id text not null,
  primary key (type, unique_key)
);

-- States that were reached. One without a state is where a new life began; those stay.
create table :schema.workflow_snapshots (
  type text not null,
  id text not null,
  version bigint not null,
  position bigint not null,
  -- What the code that made it calls itself.
  state_version integer not null,
  state jsonb,
  at timestamptz not null default clock_timestamp(),
  primary key (type, id, version)
);

-- What became of inputs that carry an id.
create table :schema.workflow_inputs (
  type text not null,
  id text not null,
  input_id text not null,
  outcome jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (type, id, input_id)
);
create index workflow_inputs_age on :schema.workflow_inputs using brin (at);

-- What was put in and what came of it, where a workflow asks for it.
create table :schema.input_observations (
  number bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  type text not null,
  id text not null,
  input_id text,
  input_type text,
  input jsonb not null,
  -- Not what was put in, but what may be kept of it.
  redacted boolean not null,
  outcome text not null check (outcome in ('accepted', 'rejected', 'already_completed')),
  rejection jsonb,
  -- The version it was decided on, and how many events came of it.
  version bigint not null,
  events integer not null,
  decided_at timestamptz not null,
  check ((outcome = 'rejected') = (rejection is not null))
);
create index input_observations_instance on :schema.input_observations (type, id, number);
create index input_observations_age on :schema.input_observations using brin (at);

-- What comes again and again. The next time is a delivery, unique by the id.
create table :schema.schedules (
  id text primary key,
  cron text not null,
  zone text not null,
  -- What it does, for people.
  action text not null,
  -- Null: it never comes again.
  next_at timestamptz,
  last_at timestamptz,
  added_at timestamptz not null default clock_timestamp()
);

-- The timers of an instance; also those that wait for their claim to be lost. Few other deliveries are unique.
create index deliveries_0_timers on :schema.deliveries_0 (lane, key) where unique_key is not null;

-- Events of an instance as one JSON text, in order.
create function :schema.workflow_events(p_type text, p_id text, p_after bigint, p_from bigint, p_to bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
begin
  return (
    select '[' || string_agg(format('[%s,%s,%s,%s,%s,%s]', e.version, e.position, to_json(e.id), to_json(e.type),
             coalesce(e.metadata ->> 'schema_version', '1'), coalesce(e.payload, 'null')), ',' order by e.position) || ']'
      from :schema.events e
     where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position > p_after and e.version between p_from and p_to);
end
$aftercommit$;

-- Whether events of the log wait that came while this instance was paused, be it behind a dead letter of one of them.
create function :schema.holds_events(p_type text, p_id text) returns boolean
language plpgsql stable as $aftercommit$
begin
  return exists (
    select from :schema.delivery_lanes l
      join :schema.deliveries_0 d on d.lane = l.lane
     where l.kind = 'timer' and l.name = p_type and d.key = p_id and d.unique_key is not null and d.ordered)
  or exists (
    select from :schema.letters x
     where x.kind = 'timer' and x.owner = p_type and x.key = p_id and x.parks and x.status in ('dead', 'redriving'));
end
$aftercommit$;

-- What is stored of an instance, from what the caller knows on, as one JSON array: version, generation, completed, paused,
-- unique key, milliseconds by the clock, position, outcome of the input, version and [state] of a snapshot, events,
-- whether what the caller knows is where they begin, and whether events of the log wait for their turn.
-- With p_lock it belongs to this transaction until it ends; an instance that does not exist yet has no row to lock, so the
-- lock is on its name. Without p_wait, null where somebody else has it. Everything after the lock is read with a new snapshot,
-- the clock too.
-- For the functions below alone, which set what it relies on: settings of its own would cost a tenth of a step.
create function :schema.load_step(
  p_type text, p_id text, p_lock boolean, p_known bigint, p_known_position bigint, p_state_version integer, p_input_id text,
  p_up_to bigint, p_wait boolean)
returns text
language plpgsql as $aftercommit$
declare
  r record;
  s record;
  v_known bigint := p_known;
  v_after bigint := p_known_position;
  v_events text;
  v_outcome jsonb;
  v_clock bigint;
  v_base text;
  v_state text;
  v_holds boolean := false;
begin
  if p_lock and p_wait then
    perform pg_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended(:schema_literal, 0)));
  elsif p_lock and not pg_try_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended(:schema_literal, 0))) then
    return null;
  end if;
  v_clock := floor(extract(epoch from clock_timestamp()) * 1000);
  if p_input_id is not null then
    select i.outcome into v_outcome from :schema.workflow_inputs i
     where i.type = p_type and i.id = p_id and i.input_id = p_input_id;
  end if;
  select * into r from :schema.workflow_instances i where i.type = p_type and i.id = p_id;
  if not found then
    return format('["0",1,false,false,null,%s,"0",%s,null,null,null,false,false]', v_clock, coalesce(v_outcome::text, 'null'));
  end if;
  if r.holds then
    v_holds := :schema.holds_events(p_type, p_id);
    if p_lock and not v_holds then
      update :schema.workflow_instances i set holds = false where i.type = p_type and i.id = p_id;
    end if;
  end if;
  -- What somebody remembers of a history that was set back is worth nothing, also where it has gone on since.
  if v_known > r.version or v_known = r.version and v_after <> r.last_position
     or v_known > 0 and v_known < r.version and not exists (
       select from :schema.events e
        where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position = v_after and e.version = v_known)
  then
    v_known := 0;
    v_after := 0;
  end if;
  if v_outcome is not null then
    -- Only what came of the input is asked for, not the state.
    v_events := :schema.workflow_events(p_type, p_id, 0, (v_outcome ->> 'from')::bigint, (v_outcome ->> 'to')::bigint);
  elsif v_known < r.version then
    select n.version, n.position, n.state::text as state into s
      from :schema.workflow_snapshots n
     where n.type = p_type and n.id = p_id and n.version > v_known and n.version <= coalesce(p_up_to, r.version)
       and (n.state is null or n.state_version = p_state_version)
     order by n.version desc
     limit 1;
    v_base := s.version::text;
    v_state := s.state;
    v_events := :schema.workflow_events(p_type, p_id, coalesce(s.position, v_after), 1, least(r.version, p_up_to));
  end if;
  return format('["%s",%s,%s,%s,%s,%s,"%s",%s,%s,%s,%s,%s,%s]', r.version, r.generation, (r.completed_at is not null)::text,
    r.paused::text, coalesce(to_json(r.unique_key)::text, 'null'), v_clock, r.last_position, coalesce(v_outcome::text, 'null'),
    coalesce(v_base, 'null'), coalesce('[' || v_state || ']', 'null'), coalesce(v_events, 'null'),
    (v_known > 0)::text, v_holds::text);
end
$aftercommit$;

-- Planned once, when there may be nothing yet: every look is by index.
create function :schema.workflow_load(
  p_type text, p_id text, p_lock boolean, p_known bigint, p_known_position bigint, p_state_version integer,
  p_input_id text default null, p_up_to bigint default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
begin
  return :schema.load_step(p_type, p_id, p_lock, p_known, p_known_position, p_state_version, p_input_id, p_up_to, true);
end
$aftercommit$;

-- Several instances at once, as [type, id, known version, known position, state version, input id] each: what workflow_load
-- says of them, null for those that somebody else has now. A list as JSON text.
create function :schema.workflow_load_many(p_wanted jsonb) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
declare
  v_one jsonb;
  v_all text := '';
begin
  -- Counting costs less than a query over the elements.
  for n in 0 .. jsonb_array_length(p_wanted) - 1 loop
    v_one := p_wanted -> n;
    v_all := v_all || ',' || coalesce(:schema.load_step(v_one ->> 0, v_one ->> 1, true, (v_one ->> 2)::bigint,
      (v_one ->> 3)::bigint, (v_one ->> 4)::integer, v_one ->> 5, null, false), 'null');
  end loop;
  return '[' || substr(v_all, 2) || ']';
end
$aftercommit$;

-- The worker, if it is alive: locked, so that nobody forgets it while claims in its name are not yet to be seen.
create function :schema.live_worker(p_worker text) returns text
language plpgsql as $aftercommit$
declare
  v_worker text;
begin
  select worker into v_worker from :schema.delivery_workers
   where worker = p_worker and lease_until > clock_timestamp() for key share;
  return v_worker;
end
$aftercommit$;

-- What a step needs before it writes: the delivery that brought its input is deleted, where its claim still stands, and its
-- unique key is taken. Returns the instance that has the key already; nothing was written then.
create function :schema.open_step(p_type text, p_id text, p jsonb) returns text
language plpgsql as $aftercommit$
declare
  v_letter bigint;
  v_holder text;
begin
  if p ? 'done' then
    -- Under the lock of the instance: whoever cancelled what brought this input has ended by now, and it is seen.
    delete from :schema.deliveries
     where segment = (p -> 'done' ->> 0)::smallint and id = (p -> 'done' ->> 1)::bigint and token = (p -> 'done' ->> 2)::bigint
    returning letter into v_letter;
    if not found then
      raise exception 'The claim was lost.' using errcode = 'AC014';
    end if;
    if v_letter is not null then
      update :schema.letters set status = 'resolved', changed_at = clock_timestamp() where id = v_letter and status = 'redriving';
    end if;
  end if;
  if p ? 'key' then
    loop
      insert into :schema.workflow_keys (type, unique_key, id) values (p_type, p ->> 'key', p_id) on conflict do nothing;
      exit when found;
      select id into v_holder from :schema.workflow_keys where type = p_type and unique_key = p ->> 'key';
      -- Given back in between.
      continue when not found;
      exit when v_holder = p_id;
      return v_holder;
    end loop;
    delete from :schema.workflow_keys where type = p_type and unique_key = p ->> 'freed' and id = p_id;
  end if;
  return null;
end
$aftercommit$;

-- Writes what follows from one input but its events, which have these positions. `work` is effects and timers, as
-- [lane, payload, unique key, due]; only timers have the latter two. With p_worker the effects come as claimed by it already,
-- and `segment:id,…` of them is returned.
create function :schema.commit_step(
  p_type text, p_id text, p_version bigint, p jsonb, p_positions bigint[], p_now timestamptz, p_segment smallint, p_worker text)
returns text
language plpgsql as $aftercommit$
declare
  v_count integer := coalesce(cardinality(p_positions), 0);
  v_last bigint := p_positions[v_count];
  v_base bigint;
  v_letter bigint;
  v_letters bigint[];
  v_claimed text;
  v_item jsonb;
  v_id bigint;
  v_token bigint;
  v_tried timestamptz;
  v_at timestamptz;
  v_in_order boolean;
begin
  if p ? 'continues' then
    v_base := case when (p ->> 'continues')::integer = 0 then 0 else p_positions[(p ->> 'continues')::integer] end;
    insert into :schema.workflow_snapshots (type, id, version, position, state_version)
    values (p_type, p_id, p_version + (p ->> 'continues')::integer, v_base, 0);
  end if;
  if p ? 'state' then
    v_base := v_last;
    insert into :schema.workflow_snapshots (type, id, version, position, state_version, state)
    values (p_type, p_id, p_version + v_count, v_last, (p ->> 'state_version')::integer, p -> 'state')
    on conflict (type, id, version) do nothing;
    delete from :schema.workflow_snapshots
     where type = p_type and id = p_id and state is not null
       and version < (select min(k.version)
                        from (select version from :schema.workflow_snapshots
                               where type = p_type and id = p_id and state is not null
                               order by version desc limit (p ->> 'keep')::integer) k);
  end if;

  if v_count > 0 and p_version = 0 then
    if exists (select from :schema.stream_types where aggregate_type = p_type) then
      raise exception 'Workflow type % is a declared stream.', p_type using errcode = 'AC011';
    end if;
    insert into :schema.workflow_instances (type, id, version, generation, unique_key, created_at, last_event_at, last_position,
                                            completed_at, needed_after)
    values (p_type, p_id, v_count, 1 + (p ? 'continues')::integer, case when not p ? 'completed' then p ->> 'key' end, p_now, p_now, v_last,
            case when p ? 'completed' then p_now end, coalesce(v_base, p_positions[1] - 1));
  elsif v_count > 0 then
    update :schema.workflow_instances i
       set version = p_version + v_count,
           generation = i.generation + (p ? 'continues')::integer,
           unique_key = case when p ? 'completed' then null else coalesce(p ->> 'key', i.unique_key) end,
           last_event_at = p_now,
           last_position = v_last,
           completed_at = case when p ? 'completed' then p_now end,
           needed_after = coalesce(v_base, i.needed_after)
     where i.type = p_type and i.id = p_id and i.version = p_version;
    if not found then
      raise exception 'Workflow %/% was changed meanwhile.', p_type, p_id using errcode = '40001';
    end if;
  end if;

  if p ? 'timers_over' then
    with gone as (
      delete from :schema.deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key is not null
         -- An input that waited for its instance to be resumed is for the next life as well.
         and (p ? 'completed' or not payload ? 'held')
      returning letter)
    select array_agg(letter) into v_letters from gone where letter is not null;
    update :schema.letters l
       set status = 'discarded', who = 'workflow ' || p_type, reason = 'the workflow is over', changed_at = p_now
     where l.kind = any (case when p ? 'effects_over' then '{timer,effect}' else '{timer}' end::text[])
       and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
       and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
       and (p ? 'completed' or not coalesce(l.delivery -> 'payload' ? 'held', false));
  elsif p ? 'gone' then
    for n in 0 .. jsonb_array_length(p -> 'gone') - 1 loop
      -- With the key as well: the plan may have been made when no index was better than another.
      delete from :schema.deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key = p -> 'gone' ->> n
      returning letter into v_letter;
      if v_letter is not null then v_letters := v_letters || v_letter; end if;
    end loop;
    -- A dead letter of a timer that was replaced or cancelled is not to fire it again. There is hardly ever one.
    if exists (select from :schema.letters where kind = 'timer' and owner = p_type and key = p_id) then
      update :schema.letters l
         set status = 'discarded', who = 'workflow ' || p_type, reason = 'the timer was replaced or cancelled', changed_at = p_now
       where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
         and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
         and l.delivery ->> 'unique_key' = any (array(select jsonb_array_elements_text(p -> 'gone')));
    end if;
  end if;
  if p ? 'completed' then
    delete from :schema.workflow_keys k where k.type = p_type and k.id = p_id and k.unique_key = coalesce(p ->> 'key', p ->> 'held_key');
  end if;
  if p ? 'work' then
    -- Without an event nothing else makes arming readers wait for this transaction.
    if v_count = 0 then perform pg_sequence_last_value(:positions_literal::regclass); end if;
    if p_worker is not null then
      v_tried := p_now;
      v_token := (p ->> 'token')::bigint;
    end if;
    v_at := to_timestamp((p ->> 'at')::double precision / 1000);
    -- One by one: a statement over all of them takes longer for the few there are. And straight into the segments: finding
    -- the way through the parent takes as long as the insert, and its bell has been rung by the events, if there are any.
    for n in 0 .. jsonb_array_length(p -> 'work') - 1 loop
      v_item := p -> 'work' -> n;
      v_id := nextval(:delivery_ids_literal::regclass);
      if v_item ->> 2 is not null then
        v_in_order := coalesce(v_item -> 1 ->> 'held' = 'in order', false);
        -- It comes again and has a dead letter already, which is to be redriven or discarded.
        continue when v_in_order and exists (
          select from :schema.letters l
           where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
             and l.delivery ->> 'unique_key' = v_item ->> 2);
        insert into :schema.deliveries_0 (segment, id, lane, owner, key, ordered, unique_key, payload, created_at, run_at)
        values (0, v_id, (v_item ->> 0)::integer, p_type, p_id, v_in_order, v_item ->> 2, v_item -> 1, v_at,
                (v_item ->> 3)::timestamptz)
        on conflict do nothing;
        if v_in_order then
          update :schema.workflow_instances i set holds = true where i.type = p_type and i.id = p_id and not i.holds;
        end if;
        continue;
      end if;
      if p_segment = 1 then
        insert into :schema.deliveries_1 (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                           first_attempt_at, last_attempt_at, token, worker)
        values (1, v_id, (v_item ->> 0)::integer, p_type, p_id, p ? 'ordered', v_item -> 1, v_at, p_now, (v_tried is not null)::integer,
                v_tried, v_tried, v_token, p_worker);
      elsif p_segment = 2 then
        insert into :schema.deliveries_2 (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                           first_attempt_at, last_attempt_at, token, worker)
        values (2, v_id, (v_item ->> 0)::integer, p_type, p_id, p ? 'ordered', v_item -> 1, v_at, p_now, (v_tried is not null)::integer,
                v_tried, v_tried, v_token, p_worker);
      elsif p_segment = 3 then
        insert into :schema.deliveries_3 (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                           first_attempt_at, last_attempt_at, token, worker)
        values (3, v_id, (v_item ->> 0)::integer, p_type, p_id, p ? 'ordered', v_item -> 1, v_at, p_now, (v_tried is not null)::integer,
                v_tried, v_tried, v_token, p_worker);
      elsif p_segment = 4 then
        insert into :schema.deliveries_4 (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                           first_attempt_at, last_attempt_at, token, worker)
        values (4, v_id, (v_item ->> 0)::integer, p_type, p_id, p ? 'ordered', v_item -> 1, v_at, p_now, (v_tried is not null)::integer,
                v_tried, v_tried, v_token, p_worker);
      end if;
      if p_worker is not null then v_claimed := concat_ws(',', v_claimed, p_segment || ':' || v_id); end if;
    end loop;
  end if;

  if p ? 'input_id' then
    insert into :schema.workflow_inputs (type, id, input_id, outcome) values (p_type, p_id, p ->> 'input_id', p -> 'outcome')
    on conflict do nothing;
  end if;
  if p ? 'seen' then
    insert into :schema.input_observations (type, id, input_id, input_type, input, redacted, outcome, rejection, version, events, decided_at)
    values (p_type, p_id, p -> 'seen' ->> 'input_id', p -> 'seen' ->> 'input_type', p -> 'seen' -> 'input',
            (p -> 'seen' ->> 'redacted')::boolean, p -> 'seen' ->> 'outcome', p -> 'seen' -> 'rejection', p_version, v_count,
            to_timestamp((p -> 'seen' ->> 'decided_at')::double precision / 1000));
  end if;
  return v_claimed;
end
$aftercommit$;

-- Writes everything that follows from inputs, as [type, id, version, step] each, and deletes deliveries that ended, as
-- [segment, id, token] each: all of it, or nothing. The caller holds the locks of workflow_load. Returns the ids that were
-- deleted, then the position of the last event of each step, with the effects that are claimed already, one a line; or
-- 'taken:' and the instance that has the unique key. Where more hangs on it than this one step, that is an error instead.
-- In a step `events` are [id, type, payload, metadata]; `done` is the delivery that brought its input: where its claim was
-- lost, nothing is written.
create function :schema.workflow_commit(p_steps jsonb, p_ended jsonb) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_steps integer := jsonb_array_length(p_steps);
  v_one jsonb;
  v_holder text;
  v_appends boolean := false;
  v_positions bigint[];
  v_before integer := 0;
  v_count integer;
  v_id bigint;
  v_segment smallint;
  v_worker text;
  v_deleted text;
  v_all text := '';
begin
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_one := p_steps -> n;
    if v_one -> 3 ?| '{done,key}' then v_holder := :schema.open_step(v_one ->> 0, v_one ->> 1, v_one -> 3); end if;
    if v_holder is not null then
      if v_steps = 1 and not v_one -> 3 ? 'strict' then return 'taken:' || v_holder; end if;
      raise exception 'The unique key is taken.' using errcode = 'AC013', detail = v_holder;
    end if;
    v_appends := v_appends or v_one -> 3 ? 'events';
    -- All of a process are in the name of one worker.
    if v_worker is null and v_one -> 3 ? 'worker' then v_worker := :schema.live_worker(v_one -> 3 ->> 'worker'); end if;
  end loop;

  if v_appends then
    -- The events of all of them in one statement: what it checks is read, and who is to be rung looked for, only once.
    with appended as (
      insert into :schema.events (id, type, aggregate_type, aggregate_id, version, tenant, payload, metadata, occurred_at, recorded_at)
      select e ->> 0, e ->> 1, s ->> 0, s ->> 1, (s ->> 2)::bigint + n, s -> 3 ->> 'tenant', e -> 2, e -> 3, v_now, v_now
        from jsonb_array_elements(p_steps) as x(s), jsonb_array_elements(s -> 3 -> 'events') with ordinality as y(e, n)
      returning position)
    select array_agg(position order by position) into v_positions from appended;
  end if;

  select segment into v_segment from :schema.delivery_state;
  for n in 0 .. v_steps - 1 loop
    v_one := p_steps -> n;
    v_count := coalesce(jsonb_array_length(v_one -> 3 -> 'events'), 0);
    v_all := v_all || e'\n' || concat_ws('|',
      case when v_count = 0 then 0 else v_positions[v_before + v_count] end::text,
      :schema.commit_step(v_one ->> 0, v_one ->> 1, (v_one ->> 2)::bigint, v_one -> 3,
        v_positions[v_before + 1 : v_before + v_count], v_now, v_segment, case when v_one -> 3 ? 'worker' then v_worker end));
    v_before := v_before + v_count;
  end loop;
  for n in 0 .. jsonb_array_length(p_ended) - 1 loop
    v_one := p_ended -> n;
    delete from :schema.deliveries
     where segment = (v_one ->> 0)::smallint and id = (v_one ->> 1)::bigint and token = (v_one ->> 2)::bigint
    returning id into v_id;
    if found then v_deleted := concat_ws(',', v_deleted, v_id); end if;
  end loop;
  return coalesce(v_deleted, '') || v_all;
end
$aftercommit$;

revoke all on all functions in schema :schema from public;
