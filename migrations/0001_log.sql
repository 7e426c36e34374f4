-- why: the log itself: events in one order, the sequence that numbers them, streams, chosen ids, and the state of readers.
-- locks: none; every object here is new.
-- older: keep

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
comment on table :schema.audit is 'Changes that an operator made by hand, with the values before and after.';

-- CACHE 1 is a condition of the order: a smaller number was handed out earlier (docs/decisions/0001).
create sequence :schema.positions as bigint cache 1;
comment on sequence :schema.positions is 'Numbers the events. Readers derive the order of the log from it: never set it back.';

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
  -- Generated, so that COPY fills it too and no writer can state a wrong size.
  bytes integer not null generated always as (
    coalesce(octet_length(payload::text), 0) + coalesce(octet_length(changes::text), 0)
    + coalesce(octet_length(previous::text), 0) + octet_length(metadata::text)) stored,
  primary key (position),
  -- The limits of our functions, for direct writers as well.
  check (length(id) between 1 and 255),
  check (length(type) between 1 and 200),
  check ((aggregate_type is null) = (aggregate_id is null))
) partition by range (position);
comment on table :schema.events is 'The log: every event, in the order of its position. Rows are appended with emit(), and never changed.';
comment on column :schema.events.position is 'Place in the one order of all events. Numbers may be missing: a rolled back transaction keeps its number.';
comment on column :schema.events.id is 'Id of the event: a UUIDv7, or what the caller chose.';
comment on column :schema.events.type is 'Dotted lower-case name, like order.placed.';
comment on column :schema.events.aggregate_type is 'Type of the thing that the event is about; null with aggregate_id for events about none.';
comment on column :schema.events.aggregate_id is 'Id of the thing that the event is about.';
comment on column :schema.events.tenant is 'The tenant of the event; null for none.';
comment on column :schema.events.payload is 'Content of the event.';
comment on column :schema.events.metadata is 'Correlation and causation ids, user, trace, depth and schema version of the event, with what the emitter added.';
comment on column :schema.events.version is 'Place in its stream; null for events of aggregates that are not kept as streams.';
comment on column :schema.events.changes is 'Field → {old, new}, for events that report a change.';
comment on column :schema.events.previous is 'The image before the change, for updates and deletions.';
comment on column :schema.events.occurred_at is 'When it happened, as the emitter says.';
comment on column :schema.events.recorded_at is 'When the row was written, by the clock of the database; the commit comes later.';
comment on column :schema.events.bytes is 'Size of payload, changes, previous and metadata as JSON text: the weight of the event in pages and windows.';

-- Room for the first events; split_partitions() goes on from here. The last one is open-ended (docs/decisions/0003).
create table :schema.events_000000000000 partition of :schema.events for values from (0) to (1000000);
create table :schema.events_000001000000 partition of :schema.events for values from (1000000) to (2000000);
create table :schema.events_open partition of :schema.events for values from (2000000) to (maxvalue);

create index events_id on :schema.events (id);
create index events_aggregate on :schema.events (aggregate_type, aggregate_id, position);

create table :schema.settings (
  one_row boolean primary key default true check (one_row),
  wake text not null default 'doorbell' check (wake in ('doorbell', 'poll')),
  max_payload bigint not null default 1048576,
  max_depth integer not null default 32,
  partition_size bigint not null default 1000000 check (partition_size >= 100),
  retention interval
);
comment on table :schema.settings is 'One row: limits and retention of the log.';
insert into :schema.settings default values;

create table :schema.log_state (
  one_row boolean primary key default true check (one_row),
  epoch integer not null default 1,
  -- Everything at or below it is final: a number missing there was rolled back.
  frontier bigint not null default 0,
  -- A position at or below the frontier that is known to hold an event; its absence later means history was removed.
  witness bigint not null default 0,
  -- The id of that event: another event at its position belongs to another history.
  witness_id text not null default '',
  -- When the frontier was last moved: an event at or below it that was recorded later came after a fork.
  published_at timestamptz not null default clock_timestamp(),
  -- The oldest position that retention has kept.
  kept_from bigint not null default 0,
  -- Which server, timeline and database this history was written on.
  identity text not null default ''
) with (fillfactor = 50);
comment on table :schema.log_state is 'One row: how far the log is final, in which epoch.';
insert into :schema.log_state default values;

create table :schema.epochs (
  epoch integer primary key,
  began_after bigint not null,
  reason text not null,
  at timestamptz not null default clock_timestamp()
);
comment on table :schema.epochs is 'Histories of this log. A new one begins where events were lost, as after a restore.';
insert into :schema.epochs (epoch, began_after, reason) values (1, 0, 'installed');

create table :schema.event_ids (
  id text primary key,
  position bigint not null,
  version bigint
);
comment on table :schema.event_ids is 'Event ids that a caller chose. They make an append repeatable, and outlive the partition of their event.';

create table :schema.stream_types (
  aggregate_type text primary key,
  adopted boolean not null default false,
  declared_at timestamptz not null default clock_timestamp()
);
comment on table :schema.stream_types is 'Aggregate types whose events are numbered 1, 2, … per aggregate.';

create table :schema.streams (
  aggregate_type text not null,
  aggregate_id text not null,
  version bigint not null default 0,
  snapshot jsonb,
  snapshot_version bigint,
  primary key (aggregate_type, aggregate_id)
) with (fillfactor = 80);
comment on table :schema.streams is 'The current version of each stream.';

-- Unlogged: after a crash of the server no reader is idle, and readers arm themselves again.
create unlogged table :schema.idle_marks (
  process text primary key,
  idle_until timestamptz not null
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table :schema.idle_marks is 'Sleeping readers: while one is listed, an append sends a notification.';

create table :schema.processes (
  process text primary key,
  host text not null,
  pid integer not null,
  version text not null,
  config_hash text not null,
  roles text not null default '',
  -- Whether the process holds the lock that proves it is alive; behind a pooler it cannot.
  locked boolean not null default false,
  lock_key text,
  lease bigint not null default 0,
  lease_until timestamptz,
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table :schema.processes is 'Processes that work with this schema, with their last sign of life.';
comment on column :schema.processes.lock_key is 'Name of the advisory lock of the current session of the process; a lost session keeps another one.';
comment on column :schema.processes.lease is 'Number of the lease of the process, one higher after each loss: work names it.';
comment on column :schema.processes.lease_until is 'End of that lease unless it is renewed; null while the process has none.';
