-- why: durable work: what is to be done, who is doing it, and what a destination can take.
-- locks: none; every object here is new.
-- older: keep

create sequence :schema.delivery_ids as bigint;
comment on sequence :schema.delivery_ids is 'Numbers the deliveries, in the order in which they were added.';

-- A lane is a number because it leads the index of every row.
create table :schema.delivery_lanes (
  lane integer generated always as identity primary key,
  kind text not null,
  name text not null,
  destination text not null default '',
  tenant text not null default '',
  priority smallint not null default 0,
  unique (kind, name, destination, tenant, priority)
);
comment on table :schema.delivery_lanes is
  'Groups of deliveries. Workers claim from lanes in turn, so that a destination or tenant with much work does not delay others.';
create index delivery_lanes_name on :schema.delivery_lanes (kind, name, lane);

-- A row is deleted when its work is done, so rows live in segments: new work goes into the current one, and a segment that
-- has run empty is truncated (rotate_deliveries), which leaves nothing for vacuum. Segment 0 does not rotate: it holds rows
-- that are due later, failed before, or must be unique.
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
  event_id text,
  primary key (segment, id)
) partition by list (segment);
comment on table :schema.deliveries is 'Work that waits or is under way: actions, effects, timers. A row is deleted when its work is done.';
comment on column :schema.deliveries.event_id is
  'The event that asked for the work: the one an observer matched, or the last one of the workflow step. Null for schedules and for steps without events.';
create index deliveries_due on :schema.deliveries (lane, run_at, id);
create index deliveries_order on :schema.deliveries (key, lane, id) where ordered;

create table :schema.deliveries_0 partition of :schema.deliveries for values in (0)
  with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create table :schema.deliveries_1 partition of :schema.deliveries (check (unique_key is null)) for values in (1) with (fillfactor = 50);
create table :schema.deliveries_2 partition of :schema.deliveries (check (unique_key is null)) for values in (2) with (fillfactor = 50);
create table :schema.deliveries_3 partition of :schema.deliveries (check (unique_key is null)) for values in (3) with (fillfactor = 50);
create table :schema.deliveries_4 partition of :schema.deliveries (check (unique_key is null)) for values in (4) with (fillfactor = 50);
-- Finds rows of segment 0 that are due, and the time of the next one.
create index deliveries_0_time on :schema.deliveries_0 (run_at);
-- The timers of an instance; also those that wait for their claim to be lost. Few other deliveries are unique.
create index deliveries_0_timers on :schema.deliveries_0 (lane, key) where unique_key is not null;
create unique index deliveries_0_unique on :schema.deliveries_0 (lane, unique_key) where unique_key is not null;

create table :schema.delivery_state (
  one_row boolean primary key default true check (one_row),
  segment smallint not null default 1,
  -- The last id when the segment became the current one.
  since_id bigint not null default 0,
  -- Counts changes that workers must have seen before somebody may rely on them: pauses and cancellations.
  version bigint not null default 0
) with (fillfactor = 50);
comment on table :schema.delivery_state is 'One row: the current segment of deliveries.';
insert into :schema.delivery_state default values;

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
comment on table :schema.delivery_workers is
  'Workers and their leases. A row claimed by a worker that is not listed, or whose lease ran out, is free.';

create table :schema.delivery_pauses (
  kind text not null,
  name text not null,
  who text not null,
  reason text,
  at timestamptz not null default clock_timestamp(),
  primary key (kind, name)
);
comment on table :schema.delivery_pauses is 'Names of actions, effects and timers that are paused.';

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
comment on table :schema.destinations is
  'Limits, circuit, rest and pause of each destination, shared by all processes. Without a row there is none of them.';
