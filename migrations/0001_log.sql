-- why: the log itself: events in one order, the sequence that numbers them, streams, chosen ids, and the state of readers.
-- locks: none that anybody waits for; every object here is new.
-- older: keep

-- Who did what by hand, with the values before and after.
create table :schema.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  who text not null,
  what text not null,
  target text,
  before jsonb,
  after jsonb,
  reason text
);

-- CACHE 1 is a condition of the order: a smaller number was handed out earlier (docs/decisions/0001).
create sequence :schema.positions as bigint cache 1;

create table :schema.events (
  position bigint not null,
  id text not null,
  type text not null,
  aggregate_type text,
  aggregate_id text,
  version bigint,
  tenant text,
  payload jsonb,
  changes jsonb,
  previous jsonb,
  metadata jsonb not null,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null default clock_timestamp(),
  primary key (position),
  -- What our functions check, also for whoever writes past them.
  check (length(id) between 1 and 255),
  check (length(type) between 1 and 200),
  check ((aggregate_type is null) = (aggregate_id is null))
) partition by range (position);

-- The name of the sequence as a literal is safe for any schema name only through format().
select set_config('aftercommit.installing', :schema_literal, true);
do $aftercommit$
declare
  place text := current_setting('aftercommit.installing');
begin
  execute format('alter table %I.events alter column position set default nextval(%L::regclass)',
    place, format('%I.positions', place));
end
$aftercommit$;

-- Room for the first events; split_partitions() goes on from here. The last one is open-ended (docs/decisions/0003).
create table :schema.events_000000000000 partition of :schema.events for values from (0) to (1000000);
create table :schema.events_000001000000 partition of :schema.events for values from (1000000) to (2000000);
create table :schema.events_open partition of :schema.events for values from (2000000) to (maxvalue);

create index events_id on :schema.events (id);
create index events_aggregate on :schema.events (aggregate_type, aggregate_id, position);

-- One row each: what an operator sets, and where the log stands.
create table :schema.settings (
  one_row boolean primary key default true check (one_row),
  wake text not null default 'doorbell' check (wake in ('doorbell', 'poll')),
  max_payload bigint not null default 1048576,
  max_depth integer not null default 32,
  partition_size bigint not null default 1000000 check (partition_size >= 100),
  retention interval
);
insert into :schema.settings default values;

create table :schema.log_state (
  one_row boolean primary key default true check (one_row),
  epoch integer not null default 1,
  -- Everything at or below it is final: a number missing there was rolled back.
  frontier bigint not null default 0,
  -- A position at or below the frontier that is known to hold an event; its absence later means history was removed.
  witness bigint not null default 0,
  -- The oldest position that retention has kept.
  kept_from bigint not null default 0,
  -- Which server, timeline and database this history was written on.
  identity text not null default ''
) with (fillfactor = 50);
insert into :schema.log_state default values;

create table :schema.epochs (
  epoch integer primary key,
  began_after bigint not null,
  reason text not null,
  at timestamptz not null default clock_timestamp()
);
insert into :schema.epochs (epoch, began_after, reason) values (1, 0, 'installed');

-- Only ids that a caller chose: they make an append repeatable, and they outlive their partition.
create table :schema.event_ids (
  id text primary key,
  position bigint not null,
  version bigint
);

create table :schema.stream_types (
  aggregate_type text primary key,
  adopted boolean not null default false,
  declared_at timestamptz not null default clock_timestamp()
);

create table :schema.streams (
  aggregate_type text not null,
  aggregate_id text not null,
  version bigint not null default 0,
  snapshot jsonb,
  snapshot_version bigint,
  primary key (aggregate_type, aggregate_id)
) with (fillfactor = 80);

-- Readers that want to be rung. Unlogged: after a crash nobody is idle, and readers arm themselves again.
create unlogged table :schema.idle_marks (
  process text primary key,
  idle_until timestamptz not null
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

create table :schema.processes (
  process text primary key,
  host text not null,
  pid integer not null,
  version text not null,
  config_hash text not null,
  roles text not null default '',
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- The doorbell. A statement of its own after the insert, so that it sees marks written while the insert waited for its
-- locks; above READ COMMITTED it cannot see fresh marks and rings always. The common case under load, nobody armed,
-- costs one look at a table of one page. A full notification queue would fail the commit: above half nobody rings.
create function :schema.ring() returns trigger
language plpgsql as $aftercommit$
begin
  if current_setting('transaction_isolation') = 'read committed'
     and not exists (select from :schema.idle_marks where idle_until > clock_timestamp()) then
    return null;
  end if;
  if coalesce(current_setting('aftercommit.bell', true), '') <> 'off'
     and (select wake = 'doorbell' from :schema.settings)
     and pg_notification_queue_usage() < 0.5 then
    perform pg_notify(:channel_literal, '');
  end if;
  return null;
end
$aftercommit$;

create trigger bell after insert on :schema.events for each statement execute function :schema.ring();
-- Also for sessions that apply replicated or bulk data with triggers off.
alter table :schema.events enable always trigger bell;

create function :schema.refuse_truncate() returns trigger
language plpgsql as $aftercommit$
begin
  raise exception 'The log is not truncated: readers would take its numbers for rolled back.'
    using errcode = 'AC008', hint = 'Set a retention, or drop the schema to start anew.';
end
$aftercommit$;
create trigger keep_history before truncate on :schema.events for each statement execute function :schema.refuse_truncate();

-- A UUIDv7 also on servers that have no uuidv7(): 48 bits of milliseconds laid over a random UUID, version bits set.
create function :schema.new_id() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $aftercommit$
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid::text
$aftercommit$;

-- Takes the next version of a stream. The row lock comes before nextval, so that inside a stream the order of versions
-- is the order of positions.
create function :schema.next_version(p_aggregate_type text, p_aggregate_id text, p_adopted boolean) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_version bigint;
  v_before bigint := 0;
begin
  update :schema.streams set version = version + 1
   where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id
  returning version into v_version;
  if not found then
    if p_adopted then
      select count(*) into v_before from :schema.events
       where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
    end if;
    insert into :schema.streams as s (aggregate_type, aggregate_id, version)
    values (p_aggregate_type, p_aggregate_id, v_before + 1)
    on conflict (aggregate_type, aggregate_id) do update set version = s.version + 1
    returning version into v_version;
  end if;
  return v_version;
end
$aftercommit$;

-- Appends one event and returns 'position' or 'position:version'. A plain event is one insert; streams and chosen ids
-- take their row first. What is seldom given comes in p_extra: tenant, changes, previous, chosen (the caller chose the
-- id), expected (the version the stream must be at). A scalar result and few parameters: measured 10 % per append.
create function :schema.append(
  p_id text, p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb,
  p_occurred_at timestamptz default null, p_extra jsonb default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_adopted boolean;
  v_version bigint;
  v_position bigint;
  v_known text;
begin
  if p_extra ? 'chosen' then
    select concat_ws(':', position, version) into v_known from :schema.event_ids where id = p_id;
    if found then return v_known; end if;
  end if;

  if p_aggregate_type is not null then
    select adopted into v_adopted from :schema.stream_types where aggregate_type = p_aggregate_type;
    if found then
      v_version := :schema.next_version(p_aggregate_type, p_aggregate_id, v_adopted);
      if v_version - 1 <> (p_extra ->> 'expected')::bigint then
        -- Whoever had the row of the stream before may have appended this very id: then it is no conflict.
        if p_extra ? 'chosen' then
          select concat_ws(':', position, version) into v_known from :schema.event_ids where id = p_id;
          if found then
            update :schema.streams set version = version - 1
             where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
            return v_known;
          end if;
        end if;
        raise exception 'Stream %/% is at version %, not %.',
          p_aggregate_type, p_aggregate_id, v_version - 1, p_extra ->> 'expected'
          using errcode = 'AC001', detail = (v_version - 1)::text;
      end if;
    end if;
  end if;

  if p_extra is null then
    insert into :schema.events (id, type, aggregate_type, aggregate_id, version, payload, metadata, occurred_at)
    values (p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_payload, p_metadata, coalesce(p_occurred_at, clock_timestamp()))
    returning position into v_position;
    return concat_ws(':', v_position, v_version);
  end if;

  if v_version is null and p_extra ? 'expected' then
    raise exception 'Aggregate type % is not declared as a stream.', coalesce(p_aggregate_type, '(none)')
      using errcode = 'AC002';
  end if;
  v_position := nextval(:positions_literal);
  if p_extra ? 'chosen' then
    insert into :schema.event_ids (id, position, version) values (p_id, v_position, v_version)
    on conflict (id) do nothing;
    if not found then
      -- Somebody else's append of the same id committed while this one waited for it: theirs is the event. The version
      -- taken above is given back, and the number becomes a hole.
      if v_version is not null then
        update :schema.streams set version = version - 1
         where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
      end if;
      select position, version into strict v_position, v_version from :schema.event_ids where id = p_id;
      return concat_ws(':', v_position, v_version);
    end if;
  end if;
  insert into :schema.events (position, id, type, aggregate_type, aggregate_id, version, tenant, payload, changes, previous, metadata, occurred_at)
  values (v_position, p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_extra ->> 'tenant', p_payload,
    p_extra -> 'changes', p_extra -> 'previous', p_metadata, coalesce(p_occurred_at, clock_timestamp()));
  return concat_ws(':', v_position, v_version);
end
$aftercommit$;

-- Appends many in one statement, in the order given, all or nothing. Without streams and chosen ids it is one insert.
-- An array that is null counts as an array of nulls. Payloads come as one JSON array: measured, that spares a fifth of a
-- batch, since nothing is escaped on the way.
create function :schema.append_many(
  p_ids text[], p_types text[], p_aggregate_types text[], p_aggregate_ids text[], p_payloads jsonb, p_metadata jsonb,
  p_occurred_at timestamptz[] default null, p_extras jsonb[] default null)
returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  if (p_extras is null or not exists (select from unnest(p_extras) x where x ?| array['chosen', 'expected']))
     and not exists (select from :schema.stream_types where aggregate_type = any (p_aggregate_types)) then
    return query
      insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
      select e.id, e.type, e.aggregate_type, e.aggregate_id, e.extra ->> 'tenant', e.payload,
             e.extra -> 'changes', e.extra -> 'previous', e.metadata, coalesce(e.occurred_at, clock_timestamp())
        from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
          as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra)
      returning position::text;
    return;
  end if;

  -- Rows of streams are made and locked in one order whatever the order of the events: two batches cannot deadlock.
  insert into :schema.streams (aggregate_type, aggregate_id, version)
  select w.t, w.i,
         case when d.adopted
           then (select count(*) from :schema.events e where e.aggregate_type = w.t and e.aggregate_id = w.i) else 0 end
    from (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
    join :schema.stream_types d on d.aggregate_type = w.t
   order by w.t, w.i
  on conflict do nothing;
  perform from (
    select from :schema.streams s
      join (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
        on s.aggregate_type = w.t and s.aggregate_id = w.i
     order by s.aggregate_type, s.aggregate_id
       for update of s) locked;
  return query
    select :schema.append(e.id, e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.occurred_at, e.extra)
      from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
        with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
     order by e.n;
end
$aftercommit$;

-- For SQL users of any language. Who, why and for whom come from session settings; '' counts as unset.
create function :schema.emit(
  type text, aggregate_type text, aggregate_id text, payload jsonb,
  changes jsonb default null, metadata jsonb default null, id text default null, occurred_at timestamptz default null)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_id text := coalesce(id, :schema.new_id());
  v_metadata jsonb := coalesce(metadata, '{}');
  v_depth integer := coalesce(nullif(current_setting('aftercommit.depth', true), '')::integer, 0);
  v_limits record;
  v_extra jsonb;
begin
  if type is null or type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' or length(type) > 200 then
    raise exception 'Event type % is not a dotted lower-case name like order.placed, so nothing was emitted.', quote_nullable(left(type, 80))
      using errcode = 'AC003';
  end if;
  if aggregate_type = '' or aggregate_id = '' or (aggregate_type is null) <> (aggregate_id is null)
     or length(aggregate_type) > 255 or length(aggregate_id) > 255 then
    raise exception 'An aggregate has a type and an id of 1 to 255 characters, or neither; nothing was emitted.'
      using errcode = 'AC004';
  end if;
  if v_id = '' or length(v_id) > 255 then
    raise exception 'An event id has 1 to 255 characters; nothing was emitted.' using errcode = 'AC004';
  end if;
  if jsonb_typeof(v_metadata) <> 'object' then
    raise exception 'metadata must be a JSON object; nothing was emitted.' using errcode = 'AC004';
  end if;
  select s.max_payload, s.max_depth into v_limits from :schema.settings s;
  if octet_length(payload::text) > v_limits.max_payload then
    raise exception 'The payload of % has % bytes, more than the limit of %; nothing was emitted.',
      type, octet_length(payload::text), v_limits.max_payload using errcode = 'AC005';
  end if;
  v_depth := greatest(v_depth, coalesce((v_metadata ->> 'depth')::integer, 0));
  if v_depth > v_limits.max_depth then
    raise exception '% would be event number % in a chain of causes, more than %; nothing was emitted.',
      type, v_depth, v_limits.max_depth using errcode = 'AC006', hint = 'An event probably causes itself.';
  end if;

  v_metadata := jsonb_strip_nulls(jsonb_build_object(
      'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
      'correlation_id', coalesce(nullif(current_setting('aftercommit.correlation_id', true), ''), v_id),
      'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
      'traceparent', nullif(current_setting('aftercommit.traceparent', true), '')))
    || v_metadata
    || jsonb_build_object('depth', v_depth);
  v_extra := jsonb_strip_nulls(jsonb_build_object(
    'chosen', case when id is not null then true end,
    'tenant', nullif(current_setting('aftercommit.tenant', true), '')));
  if changes is not null then
    v_extra := v_extra || jsonb_build_object('changes', changes);
  end if;
  return split_part(:schema.append(v_id, type, aggregate_type, aggregate_id, payload, v_metadata, occurred_at,
    nullif(v_extra, '{}')), ':', 1)::bigint;
end
$aftercommit$;

-- Declares that aggregates of this type are kept as streams, with versions 1, 2, … Plain events of the type that exist
-- already are refused, or adopted: they keep no version, and each stream goes on from their number.
create function :schema.declare_stream(aggregate_type text, adopt boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $aftercommit$
#variable_conflict use_variable
declare
  v_type text := aggregate_type;
  v_plain boolean;
begin
  if exists (select from :schema.stream_types t where t.aggregate_type = v_type) then return false; end if;
  -- Appenders look here before they write, and keep that lock to their end. So those that did not see the declaration
  -- have ended, and new ones wait until it commits. A lock on events would come after their look, which is too late.
  lock table :schema.stream_types in access exclusive mode;
  v_plain := exists (select from :schema.events e where e.aggregate_type = v_type);
  if v_plain and not adopt then
    raise exception 'Aggregate type % has plain events already, so it was not declared as a stream.', v_type
      using errcode = 'AC007', hint = 'Pass adopt => true to go on from them.';
  end if;
  insert into :schema.stream_types (aggregate_type, adopted) values (v_type, v_plain) on conflict do nothing;
  return true;
end
$aftercommit$;
