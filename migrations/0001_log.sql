-- why: the log itself: events in one order, the sequence that numbers them, streams, chosen ids, and the state of readers.
-- locks: none; every object here is new.
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
  position bigint not null default nextval(:positions_literal::regclass),
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
  -- Whether the process holds the lock that proves it is alive; behind a pooler it cannot.
  locked boolean not null default false,
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
