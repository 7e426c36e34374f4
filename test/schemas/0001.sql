-- The schema of aftercommit 0.1.0, written by npm run schema.
begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
create schema "aftercommit";
comment on schema "aftercommit" is 'The event log of aftercommit, with its subscriptions, deliveries, observers and workflows.';
create table "aftercommit".migrations (
  version      integer primary key,
  name         text not null,
  checksum     text not null,
  applied_at   timestamptz not null default pg_catalog.clock_timestamp(),
  applied_by   text not null,
  breaks_older boolean not null
);
comment on table "aftercommit".migrations is 'Numbered migrations that were applied, with the checksum of each file.';
create table "aftercommit".sql_files (
  name       text primary key,
  kind       text not null,
  object     text,
  on_table   text,
  hash       text not null,
  version    integer not null,
  applied_at timestamptz not null default pg_catalog.clock_timestamp()
);
comment on table "aftercommit".sql_files is 'Functions, triggers and views in place, with the version of the build that brought them.';
create table "aftercommit".granted_roles (
  role    text not null,
  "right" text not null,
  version integer not null,
  primary key (role, "right")
);
comment on table "aftercommit".granted_roles is 'Roles that were given rights: migrate gives these again on what it adds.';
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: the log itself: events in one order, the sequence that numbers them, streams, chosen ids, and the state of readers.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  who text not null,
  what text not null,
  target text,
  before jsonb,
  after jsonb,
  reason text
);
comment on table "aftercommit".audit is 'Changes that an operator made by hand, with the values before and after.';

-- CACHE 1 is a condition of the order: a smaller number was handed out earlier (docs/decisions/0001).
create sequence "aftercommit".positions as bigint cache 1;
comment on sequence "aftercommit".positions is 'Numbers the events. Readers derive the order of the log from it: never set it back.';

create table "aftercommit".events (
  position bigint not null default nextval('"aftercommit".positions'::regclass),
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
comment on table "aftercommit".events is 'The log: every event, in the order of its position. Rows are appended with emit(), and never changed.';
comment on column "aftercommit".events.position is 'Place in the one order of all events. Numbers may be missing: a rolled back transaction keeps its number.';
comment on column "aftercommit".events.id is 'Id of the event: a UUIDv7, or what the caller chose.';
comment on column "aftercommit".events.type is 'Dotted lower-case name, like order.placed.';
comment on column "aftercommit".events.aggregate_type is 'Type of the thing that the event is about; null with aggregate_id for events about none.';
comment on column "aftercommit".events.aggregate_id is 'Id of the thing that the event is about.';
comment on column "aftercommit".events.tenant is 'The tenant of the event; null for none.';
comment on column "aftercommit".events.payload is 'Content of the event.';
comment on column "aftercommit".events.metadata is 'Correlation and causation ids, user, trace, depth and schema version of the event, with what the emitter added.';
comment on column "aftercommit".events.version is 'Place in its stream; null for events of aggregates that are not kept as streams.';
comment on column "aftercommit".events.changes is 'Field → {old, new}, for events that report a change.';
comment on column "aftercommit".events.previous is 'The image before the change, for updates and deletions.';
comment on column "aftercommit".events.occurred_at is 'When it happened, as the emitter says.';
comment on column "aftercommit".events.recorded_at is 'When the row was written, by the clock of the database; the commit comes later.';
comment on column "aftercommit".events.bytes is 'Size of payload, changes, previous and metadata as JSON text: the weight of the event in pages and windows.';

-- Room for the first events; split_partitions() goes on from here. The last one is open-ended (docs/decisions/0003).
create table "aftercommit".events_000000000000 partition of "aftercommit".events for values from (0) to (1000000);
create table "aftercommit".events_000001000000 partition of "aftercommit".events for values from (1000000) to (2000000);
create table "aftercommit".events_open partition of "aftercommit".events for values from (2000000) to (maxvalue);

create index events_id on "aftercommit".events (id);
create index events_aggregate on "aftercommit".events (aggregate_type, aggregate_id, position);

create table "aftercommit".settings (
  one_row boolean primary key default true check (one_row),
  wake text not null default 'doorbell' check (wake in ('doorbell', 'poll')),
  max_payload bigint not null default 1048576,
  max_depth integer not null default 32,
  partition_size bigint not null default 1000000 check (partition_size >= 100),
  retention interval
);
comment on table "aftercommit".settings is 'One row: limits and retention of the log.';
insert into "aftercommit".settings default values;

create table "aftercommit".log_state (
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
comment on table "aftercommit".log_state is 'One row: how far the log is final, in which epoch.';
insert into "aftercommit".log_state default values;

create table "aftercommit".epochs (
  epoch integer primary key,
  began_after bigint not null,
  reason text not null,
  at timestamptz not null default clock_timestamp()
);
comment on table "aftercommit".epochs is 'Histories of this log. A new one begins where events were lost, as after a restore.';
insert into "aftercommit".epochs (epoch, began_after, reason) values (1, 0, 'installed');

create table "aftercommit".event_ids (
  id text primary key,
  position bigint not null,
  version bigint
);
comment on table "aftercommit".event_ids is 'Event ids that a caller chose. They make an append repeatable, and outlive the partition of their event.';

create table "aftercommit".stream_types (
  aggregate_type text primary key,
  adopted boolean not null default false,
  declared_at timestamptz not null default clock_timestamp()
);
comment on table "aftercommit".stream_types is 'Aggregate types whose events are numbered 1, 2, … per aggregate.';

create table "aftercommit".streams (
  aggregate_type text not null,
  aggregate_id text not null,
  version bigint not null default 0,
  snapshot jsonb,
  snapshot_version bigint,
  primary key (aggregate_type, aggregate_id)
) with (fillfactor = 80);
comment on table "aftercommit".streams is 'The current version of each stream.';

-- Unlogged: after a crash of the server no reader is idle, and readers arm themselves again.
create unlogged table "aftercommit".idle_marks (
  process text primary key,
  idle_until timestamptz not null
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table "aftercommit".idle_marks is 'Sleeping readers: while one is listed, an append sends a notification.';

create table "aftercommit".processes (
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
comment on table "aftercommit".processes is 'Processes that work with this schema, with their last sign of life.';
comment on column "aftercommit".processes.lock_key is 'Name of the advisory lock of the current session of the process; a lost session keeps another one.';
comment on column "aftercommit".processes.lease is 'Number of the lease of the process, one higher after each loss: work names it.';
comment on column "aftercommit".processes.lease_until is 'End of that lease unless it is renewed; null while the process has none.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (1, 'log', '4c58eed79dc9d6cd6176d186cc18fab73d5d91467ebd8475d5e9b6fa37eb4ab1',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: named readers with their checkpoints and leases, dead letters, parked events, processed keys, projections, relays.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".subscriptions (
  id text primary key,
  kind text not null default 'subscription',
  -- What was registered last: the filter, as JSON. A process that registered an earlier one may not own it any more.
  definition jsonb not null,
  generation bigint not null default 1,
  paused boolean not null default false,
  -- active, failing, stopped
  status text not null default 'active',
  reason text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
comment on table "aftercommit".subscriptions is 'Named readers of the log: subscriptions, projections, relays, and the readers of observers and workflows.';

create table "aftercommit".subscription_partitions (
  id text not null references "aftercommit".subscriptions on delete cascade,
  partition integer not null default 0,
  -- Everything at or below is finished, and so is what lies in `done` above it.
  position bigint not null,
  done int8multirange not null default '{}',
  last_event_id text,
  updated_at timestamptz not null default clock_timestamp(),
  owner text,
  term bigint not null default 0,
  lease_until timestamptz,
  -- False while somebody runs it, true once it was given back: an owner that died leaves false behind.
  clean boolean not null default true,
  -- The epoch of the log that the position belongs to.
  epoch integer not null default 1,
  -- After an unclean end: which position is being tried, and how often it was begun.
  trying bigint,
  tries integer not null default 0,
  save bigint not null default 0,
  settled jsonb not null default '{}',
  deaths integer not null default 0,
  primary key (id, partition)
) with (fillfactor = 50);
comment on table "aftercommit".subscription_partitions is 'The checkpoint and the lease of each partition of a subscription. Every write names the term of its owner.';
comment on column "aftercommit".subscription_partitions.save is 'Number of the last write of the owner: a repeated write with this number has succeeded already.';
comment on column "aftercommit".subscription_partitions.settled is
  'Of events that are not finished: position → owners of actions whose row or dead letter is written. They are not attempted again.';
comment on column "aftercommit".subscription_partitions.deaths is 'Owners that died in a row while the position stayed the same.';

create table "aftercommit".letters (
  id bigint generated always as identity primary key,
  kind text not null,
  owner text not null,
  key text not null,
  event_id text not null,
  position bigint not null,
  event jsonb not null,
  error jsonb not null,
  attempts integer not null,
  first_attempt_at timestamptz not null,
  last_attempt_at timestamptz not null,
  status text not null default 'dead' check (status in ('dead', 'redriving', 'resolved', 'discarded')),
  -- Whether later events of the key wait behind it.
  parks boolean not null default false,
  -- How often it was tried again.
  redrives integer not null default 0,
  -- Written while its subscription was failing: tried again by itself once that is over.
  streak boolean not null default false,
  who text,
  reason text,
  changed_at timestamptz not null default clock_timestamp(),
  -- Everything needed to make the delivery of a dead letter again, and the one that was made.
  delivery jsonb,
  placed bigint,
  unique (kind, owner, event_id)
);
comment on table "aftercommit".letters is 'Dead letters: events and deliveries that ran out of attempts. The event is a copy, and outlives its partition.';
create index letters_open on "aftercommit".letters (kind, owner, key) include (status, parks)
  where status in ('dead', 'redriving') or parks;
create index letters_streak on "aftercommit".letters (kind, owner) where streak;
-- An owner looks every few seconds; there is almost never a row.
create index letters_marked on "aftercommit".letters (kind, owner, position)
  where status = 'redriving' or (parks and status in ('discarded', 'resolved'));
create index letters_recent on "aftercommit".letters (changed_at desc, id desc);
create index letters_to_place on "aftercommit".letters (position) where status = 'redriving' and delivery is not null and placed is null;
-- For retention.
create index letters_settled on "aftercommit".letters (changed_at) where status in ('resolved', 'discarded') and not parks;

create table "aftercommit".parked (
  owner text not null,
  position bigint not null,
  key text not null,
  event jsonb not null,
  parked_at timestamptz not null default clock_timestamp(),
  primary key (owner, position)
);
comment on table "aftercommit".parked is 'Copies of events that wait behind a dead letter of their key, in order.';
create index parked_key on "aftercommit".parked (owner, key, position);

create table "aftercommit".processed (
  subscription_id text not null,
  event_id text not null,
  position bigint,
  processed_at timestamptz not null default clock_timestamp(),
  primary key (subscription_id, event_id)
);
comment on table "aftercommit".processed is 'Events that an idempotent handler has processed, by subscription.';
create index processed_age on "aftercommit".processed (processed_at);

create table "aftercommit".checkpoint_marks (
  subscription_id text not null references "aftercommit".subscriptions on delete cascade,
  at timestamptz not null default clock_timestamp(),
  position bigint not null,
  primary key (subscription_id, at)
);
comment on table "aftercommit".checkpoint_marks is 'Where a checkpoint stood at a time. The retention of processed keys counts from when their event was passed.';

create table "aftercommit".projection_states (
  projection text not null references "aftercommit".subscriptions on delete cascade,
  id text not null,
  state jsonb not null,
  position bigint not null,
  primary key (projection, id)
);
comment on table "aftercommit".projection_states is 'States of projections that are kept by aftercommit, by id.';

create table "aftercommit".relay_batches (
  relay text not null references "aftercommit".subscriptions on delete cascade,
  first_position bigint not null,
  last_position bigint not null,
  -- Exactly what was published: the range also holds what the filter passed over and what was parked.
  positions int8multirange not null,
  events bigint not null,
  published_at timestamptz not null default clock_timestamp(),
  primary key (relay, last_position)
);
comment on table "aftercommit".relay_batches is 'Batches that a relay has published.';
create index relay_batches_age on "aftercommit".relay_batches (relay, published_at);

create table "aftercommit".frontier_marks (
  at timestamptz primary key default clock_timestamp(),
  frontier bigint not null
);
comment on table "aftercommit".frontier_marks is
  'Where the frontier stood at a time. An event at or below a mark that was recorded later was written by hand.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (2, 'subscriptions', '90350f780da52223816b42ad43b3b9efe96e9daa2f8a4053720469a5055bc6fe',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: durable work: what is to be done, who is doing it, and what a destination can take.
-- locks: none; every object here is new.
-- older: keep

create sequence "aftercommit".delivery_ids as bigint;
comment on sequence "aftercommit".delivery_ids is 'Numbers the deliveries, in the order in which they were added.';

-- A lane is a number because it leads the index of every row.
create table "aftercommit".delivery_lanes (
  lane integer generated always as identity primary key,
  kind text not null,
  name text not null,
  destination text not null default '',
  tenant text not null default '',
  priority smallint not null default 0,
  unique (kind, name, destination, tenant, priority)
);
comment on table "aftercommit".delivery_lanes is
  'Groups of deliveries. Workers claim from lanes in turn, so that a destination or tenant with much work does not delay others.';
create index delivery_lanes_name on "aftercommit".delivery_lanes (kind, name, lane);

-- A row is deleted when its work is done, so rows live in segments: new work goes into the current one, and a segment that
-- has run empty is truncated (rotate_deliveries), which leaves nothing for vacuum. Segment 0 does not rotate: it holds rows
-- that are due later, failed before, or must be unique.
create table "aftercommit".deliveries (
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
comment on table "aftercommit".deliveries is 'Work that waits or is under way: actions, effects, timers. A row is deleted when its work is done.';
comment on column "aftercommit".deliveries.event_id is
  'The event that asked for the work: the one an observer matched, or the last one of the workflow step. Null for schedules and for steps without events.';
create index deliveries_due on "aftercommit".deliveries (lane, run_at, id);
create index deliveries_order on "aftercommit".deliveries (key, lane, id) where ordered;

create table "aftercommit".deliveries_0 partition of "aftercommit".deliveries for values in (0)
  with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
create table "aftercommit".deliveries_1 partition of "aftercommit".deliveries (check (unique_key is null)) for values in (1) with (fillfactor = 50);
create table "aftercommit".deliveries_2 partition of "aftercommit".deliveries (check (unique_key is null)) for values in (2) with (fillfactor = 50);
create table "aftercommit".deliveries_3 partition of "aftercommit".deliveries (check (unique_key is null)) for values in (3) with (fillfactor = 50);
create table "aftercommit".deliveries_4 partition of "aftercommit".deliveries (check (unique_key is null)) for values in (4) with (fillfactor = 50);
-- Finds rows of segment 0 that are due, and the time of the next one.
create index deliveries_0_time on "aftercommit".deliveries_0 (run_at);
-- The timers of an instance; also those that wait for their claim to be lost. Few other deliveries are unique.
create index deliveries_0_timers on "aftercommit".deliveries_0 (lane, key) where unique_key is not null;
create unique index deliveries_0_unique on "aftercommit".deliveries_0 (lane, unique_key) where unique_key is not null;

create table "aftercommit".delivery_state (
  one_row boolean primary key default true check (one_row),
  segment smallint not null default 1,
  -- The last id when the segment became the current one.
  since_id bigint not null default 0,
  -- Counts changes that workers must have seen before somebody may rely on them: pauses and cancellations.
  version bigint not null default 0
) with (fillfactor = 50);
comment on table "aftercommit".delivery_state is 'One row: the current segment of deliveries.';
insert into "aftercommit".delivery_state default values;

create table "aftercommit".delivery_workers (
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
comment on table "aftercommit".delivery_workers is
  'Workers and their leases. A row claimed by a worker that is not listed, or whose lease ran out, is free.';

create table "aftercommit".delivery_pauses (
  kind text not null,
  name text not null,
  who text not null,
  reason text,
  at timestamptz not null default clock_timestamp(),
  primary key (kind, name)
);
comment on table "aftercommit".delivery_pauses is 'Names of actions, effects and timers that are paused.';

create table "aftercommit".destinations (
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
comment on table "aftercommit".destinations is
  'Limits, circuit, rest and pause of each destination, shared by all processes. Without a row there is none of them.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (3, 'delivery', '6112ed9a3931140caba8445162e58f8d460b0680051349eaccce28589cb7aadf',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: when observers and their actions began, what they were then, what they did, and when they last raised an alarm.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".observer_actions (
  observer text not null,
  action text not null,
  start_position bigint not null,
  added_at timestamptz not null default clock_timestamp(),
  primary key (observer, action)
);
comment on table "aftercommit".observer_actions is
  'Where each action begins: it sees events after this position, the head when it was first registered.';

create table "aftercommit".observer_versions (
  observer text not null,
  version integer not null,
  from_position bigint not null,
  hash text not null,
  -- Null: it was removed or switched off from this position on.
  definition jsonb,
  at timestamptz not null default clock_timestamp(),
  primary key (observer, version)
);
comment on table "aftercommit".observer_versions is
  'Definitions of observers over time, to explain old events by the rule that was in force. Secrets are references here.';

create table "aftercommit".observer_alerts (
  observer text primary key,
  sent_at timestamptz,
  count bigint not null default 0
) with (fillfactor = 50);
comment on table "aftercommit".observer_alerts is 'The last alert of each observer, and how many failures came since.';

-- Append-only, partitioned by day: upkeep drops whole days.
create table "aftercommit".runs (
  at timestamptz not null default clock_timestamp(),
  kind text not null default 'observer',
  owner text not null,
  name text,
  event_id text,
  position bigint,
  event_type text,
  aggregate_type text,
  aggregate_id text,
  tenant text,
  trace_id text,
  span_id text,
  -- 1 for the first attempt, made from the log; later attempts have records of their own.
  attempt integer not null default 1,
  actions jsonb not null default '[]',
  status text not null,
  duration_ms double precision not null,
  check (kind <> 'observer' or (event_id is not null and position is not null and event_type is not null))
) partition by range (at);
comment on table "aftercommit".runs is 'Run records: the attempts of observers, effects and timers, and how they ended. Read them through observer_runs.';
comment on column "aftercommit".runs.kind is 'observer, effect or timer.';
comment on column "aftercommit".runs.owner is 'The observer, or the workflow type of an effect or timer.';
comment on column "aftercommit".runs.name is 'The effect, or the key of the timer; null for an observer, which has a list of actions.';
create index runs_event on "aftercommit".runs (event_id);
create index runs_owner on "aftercommit".runs (owner, at desc);
create index runs_problems on "aftercommit".runs (at desc) where status <> 'success';
-- For days without a partition: a record is never refused.
create table "aftercommit".runs_other partition of "aftercommit".runs default;
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (4, 'observers', '74f8e61deb7f6cf3a49b828b167b5e7a6af9d7e7765468f21448e8ba03b1ce0d',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: workflows: their instances, snapshots, unique keys, inputs and schedules. Their histories are in the log.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".workflow_instances (
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
comment on table "aftercommit".workflow_instances is 'Workflow instances and their state of progress. Their histories are events of the log.';
create index workflow_instances_recent on "aftercommit".workflow_instances (type, last_position);

-- A table of its own: the second instance learns from the row which one was first, and no statement fails.
create table "aftercommit".workflow_keys (
  type text not null,
  unique_key text not null,
  id text not null,
  primary key (type, unique_key)
);
comment on table "aftercommit".workflow_keys is 'The instance that has a unique key.';

create table "aftercommit".workflow_snapshots (
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
comment on table "aftercommit".workflow_snapshots is
  'States of instances at a version. A row without a state marks the beginning of a new life, and stays.';

create table "aftercommit".workflow_inputs (
  type text not null,
  id text not null,
  input_id text not null,
  outcome jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (type, id, input_id)
);
comment on table "aftercommit".workflow_inputs is 'Outcomes of inputs that carry an id: a repeated input gets the first outcome.';
create index workflow_inputs_age on "aftercommit".workflow_inputs using brin (at);

create table "aftercommit".input_observations (
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
comment on table "aftercommit".input_observations is 'Inputs and their outcomes, of workflows with `observe`.';
create index input_observations_instance on "aftercommit".input_observations (type, id, number);
create index input_observations_age on "aftercommit".input_observations using brin (at);

create table "aftercommit".schedules (
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
comment on table "aftercommit".schedules is 'Recurring work. The next time of each is a delivery, unique by the id.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (5, 'workflows', 'f6f48ad4ed221b6662dccfbc824c3366a41b53503d32ce23ccf24412ffd7ee47',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: the browsers that users let us push to, and which of them have a message while others are tried again.
-- locks: none; every object here is new.
-- older: keep

-- One row per browser. Its address is a capability: with the keys it reaches the person behind it.
create table "aftercommit".push_subscriptions (
  -- Addresses are longer than an index can hold.
  endpoint_hash text primary key,
  user_id text not null,
  endpoint text not null,
  p256dh text not null,
  auth text not null,
  created_at timestamptz not null default clock_timestamp(),
  -- When the browser last registered: the oldest go when a user has too many.
  seen_at timestamptz not null default clock_timestamp()
);
comment on table "aftercommit".push_subscriptions is 'Browsers that receive push messages, by user.';
create index push_subscriptions_user on "aftercommit".push_subscriptions (user_id, seen_at);

create table "aftercommit".push_progress (
  -- The idempotency key of the action at the event.
  message text not null,
  endpoint_hash text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (message, endpoint_hash)
);
comment on table "aftercommit".push_progress is 'Browsers that have a message which is tried again for others.';
create index push_progress_age on "aftercommit".push_progress (at);
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (6, 'push', '35163eec20cd77f016ffa65d124b8db67c7b001af539c72259aa491e338ae5a2',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: documents that observers keep for searching, found by their words and versioned by the position of their event.
-- locks: none; every object here is new.
-- older: keep

-- One row per index. Documents of new events go to `generation`, and to `building` as well while a reindex fills it.
-- Writers hold the row with FOR KEY SHARE while they write. A change of either generation takes it FOR UPDATE first, so no
-- writer still uses the generation before.
create table "aftercommit".search_indexes (
  name text primary key,
  generation integer not null default 1,
  -- The text search configuration that the words of the generation are made with.
  language text not null,
  building integer,
  building_language text,
  -- The last sign of life of the reindex.
  building_seen_at timestamptz,
  -- A number is given once: a reindex that was given up can never write into the next one.
  last_generation integer not null default 1
) with (fillfactor = 50);
comment on table "aftercommit".search_indexes is 'Search indexes: the generation that is searched, and the one that a reindex builds.';

create table "aftercommit".search_documents (
  index_name text not null,
  generation integer not null,
  -- '' for none.
  tenant text not null,
  id text not null,
  -- Of the event that said so. The higher one wins, whatever arrives last.
  position bigint not null,
  -- A tombstone stays for a while, so that an older event that comes late does not bring the document back.
  deleted boolean not null,
  document jsonb,
  words tsvector,
  written_at timestamptz not null default clock_timestamp(),
  primary key (index_name, generation, tenant, id),
  check (deleted = (document is null))
);
comment on table "aftercommit".search_documents is 'Documents that search actions keep, with their words.';
create index search_documents_words on "aftercommit".search_documents using gin (words);
create index search_documents_tombstones on "aftercommit".search_documents (written_at) where deleted;
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (7, 'search', '0e17bd562ecb911a0dd01d93e99dc42c22f8cea3c570b32605929eae9443fa15',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: receipts say which filter a subscription had at an event and find dead letters and deliveries by their event.
-- locks: deliveries, dead letters and audit against writes while their indexes are built; they hold what waits, not history.
-- older: keep

-- Written by the statement that registers a subscription.
create table "aftercommit".subscription_versions (
  id text not null references "aftercommit".subscriptions on delete cascade,
  generation bigint not null,
  definition jsonb not null,
  -- Events above this position were judged by it. Null: it was registered before versions were kept.
  from_position bigint,
  at timestamptz not null default clock_timestamp(),
  primary key (id, generation)
);
comment on table "aftercommit".subscription_versions is
  'Filters of subscriptions over time, to explain old events by the filter that was registered when they were read.';
insert into "aftercommit".subscription_versions (id, generation, definition, at)
select id, generation, definition, updated_at from "aftercommit".subscriptions;

create index letters_event on "aftercommit".letters (event_id);
-- Dead letters of effects and timers are found by the event of their workflow.
create index letters_asked on "aftercommit".letters ((delivery ->> 'event_id')) where delivery is not null;
-- Lists, counts and causes of what waits for an operator.
create index letters_dead on "aftercommit".letters (id) where status = 'dead';
create index deliveries_event on "aftercommit".deliveries (event_id) where event_id is not null;
create index audit_seeks on "aftercommit".audit (target, at) where what in ('subscription.seek', 'subscription.fast-forward');
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (8, 'receipts', '821222d49ea3f6f43aecc0f1184f45a6a4d2dccd37e22f4d8b968642b36ff815',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: the database holds the nesting of events to a limit as well, for every way into the log.
-- locks: settings, for a moment.
-- older: keep

alter table "aftercommit".settings add column max_nesting integer not null default 64 check (max_nesting between 1 and 1000);
alter table "aftercommit".settings add check (max_payload between 1 and 16777216);
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (9, 'limits', 'c8831fc4a1aec5bb4166b9aaf0ba782918251f441eb3d2d3755c287541e703e5',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: tables whose row changes become events: which ones, and how each is captured.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".captured_tables (
  aggregate_type text primary key,
  relation regclass not null unique,
  -- The name when it was last looked at: a table that was dropped and made again is found by it.
  table_schema text not null,
  table_name text not null,
  omit text[] not null default '{}',
  -- Their numbers in the table: a column that is left out stays so under a new name.
  omit_numbers smallint[] not null default '{}',
  on_truncate text not null default 'event' check (on_truncate in ('event', 'deny', 'ignore')),
  each text not null default 'statement' check (each in ('statement', 'row')),
  unchanged boolean not null default false,
  captured_at timestamptz not null default clock_timestamp(),
  unique (table_schema, table_name)
);
comment on table "aftercommit".captured_tables is 'Tables whose row changes become events. Rows are written with capture() and removed with uncapture().';
comment on column "aftercommit".captured_tables.aggregate_type is 'Aggregate type of the events, and the first part of their type.';
comment on column "aftercommit".captured_tables.relation is 'The table; of a partitioned or inherited table the parent.';
comment on column "aftercommit".captured_tables.omit is 'Columns that are left out of every event.';
comment on column "aftercommit".captured_tables.on_truncate is 'TRUNCATE writes an event, is denied, or is ignored.';
comment on column "aftercommit".captured_tables.each is 'Whether triggers fire once per statement or once per row.';
comment on column "aftercommit".captured_tables.unchanged is 'Whether an UPDATE that changes nothing is an event.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (10, 'capture', '756eac2cb1b12855e6da2c9b6338cfea5440b8fbcc8e9b114c3f799e67a7f795',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: an id that was chosen stands for one event: a hash of its content tells a repetition from another event.
-- locks: event_ids, for a moment.
-- older: keep

alter table "aftercommit".event_ids add column content bytea;
comment on column "aftercommit".event_ids.content is 'Hash of type, aggregate, tenant, payload and changes; null for ids from before it was kept.';

create table "aftercommit".id_turns (turn integer primary key) with (fillfactor = 50);
comment on table "aftercommit".id_turns is 'Rows that batches with chosen ids lock in order, so that they never wait for each other in a circle.';
insert into "aftercommit".id_turns select turn from pg_catalog.generate_series(0, 63) turn;
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (11, 'event_content', '55c9e44297e208326ec341031c38f7bbc4c73c8eaf102e2ba841ab412442002d',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: how long a transaction had run when it wrote an event, without a value that every append would have to compute.
-- locks: events, for a moment; no row is rewritten.
-- older: keep

alter table "aftercommit".events add column began_at timestamptz;
alter table "aftercommit".events alter column began_at set default now();
comment on column "aftercommit".events.began_at is 'When the transaction began that wrote the event: recorded_at - began_at is how long it had run. Null for events from before there was this column.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (12, 'session', '09de093ddeaa8e5c2001cde746657a427beb72d911ea4a22016bb6eb7c1f57f7',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: an input that an event of the log brought is remembered as long as that event, so that a subscription set back counts it once.
-- locks: ACCESS EXCLUSIVE on workflow_inputs for an instant, and while its BRIN index is made: seconds for millions of rows.
-- older: keep

alter table "aftercommit".workflow_inputs add column position bigint;
comment on column "aftercommit".workflow_inputs.position is
  'Of the event of the log that brought the input; null for an input that a caller brought.';
create index workflow_inputs_position on "aftercommit".workflow_inputs using brin (position);
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (13, 'input_positions', 'fb57c36bbdbacdda80ddd78e7d3fd0c2fa4be9884eb045542addbf90a6c31e42',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: one lease per process says that the process lives; terms of subscriptions and tokens of claims name it.
-- locks: ACCESS EXCLUSIVE on processes, subscription_partitions and delivery_workers, for milliseconds; no table is rewritten.
-- older: refuse

-- Leases of older processes end here: the new build takes subscriptions and claims up under leases of its own.
alter table "aftercommit".processes drop column lease;
alter table "aftercommit".processes add column lease text;
update "aftercommit".processes set lease_until = null;
comment on column "aftercommit".processes.locked is 'Whether the lock proves that the process lives; behind a pooler only the end of the lease does.';
comment on column "aftercommit".processes.lease is
  'Name of the lease of the process, new after each loss: subscriptions and claims name it. Null while the process has none.';
comment on column "aftercommit".processes.lease_until is 'End of that lease unless it is renewed.';

alter table "aftercommit".subscription_partitions drop column lease_until;
update "aftercommit".subscription_partitions set term = term + 1, owner = null where owner is not null;
comment on column "aftercommit".subscription_partitions.owner is 'Lease of the process that runs the subscription; without that lease nobody does.';

alter table "aftercommit".delivery_workers drop column lease_until;
alter table "aftercommit".delivery_workers drop column locks;
comment on column "aftercommit".delivery_workers.worker is 'Lease of the process; without that lease its claims are free.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (14, 'one_lease_per_process', 'f4f1d6ddc20971817c5485eb0a383452f66ffa8cd4f421e7e5b0a06f1315a5ac',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), true);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: readers wait for transactions that hold the locks of the sequence and of events alone, so each number must be taken
--   under both: no partition takes numbers by itself any more.
-- locks: each partition of events, for a moment.
-- older: keep

do $aftercommit$
declare
  v_partition regclass;
begin
  for v_partition in
    select i.inhrelid::regclass from pg_catalog.pg_inherits i
     where i.inhparent = pg_catalog.to_regclass(pg_catalog.format('%I.events', 'aftercommit'))
  loop
    execute pg_catalog.format('alter table only %s alter column position drop default', v_partition);
  end loop;
end
$aftercommit$;
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (15, 'holders', '35c96744ca3c3724f8724af747fafa2371515252644b4d3dd5bb963f5eec9570',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: how far the existing rows of captured tables have become events, so that a backfill goes on where it ended.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".backfills (
  aggregate_type text primary key,
  -- The key of the last row that became an event, column by column as text; null before the first.
  after_key text[],
  rows bigint not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
comment on table "aftercommit".backfills is 'Backfills of captured tables: how far each has come.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (16, 'backfill', 'c394859dd73f45458664a06f6023f82b2e59965ac403d8e8a1091f3b21db33ce',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: an observation is kept for as long as the process that wrote it said, whatever another process is set to.
-- locks: ACCESS EXCLUSIVE on input_observations for an instant, and while its BRIN index is made: seconds for millions of rows.
-- older: keep

alter table "aftercommit".input_observations add column keep_until timestamptz;
comment on column "aftercommit".input_observations.keep_until is
  'When it goes, as the process that wrote it was set; null for 30 days.';
create index input_observations_end on "aftercommit".input_observations using brin (keep_until);
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (17, 'observation_ends', 'f31f0361d93bb99257272e007c7521d496382e27c69f681171593b2cdbffb998',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- why: how far tables of events that existed before have been imported, so that an import goes on where it ended.
-- locks: none; every object here is new.
-- older: keep

create table "aftercommit".imports (
  source text primary key,
  -- The order columns of the last row that was imported, as text; null before the first.
  after_key text[],
  rows bigint not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
comment on table "aftercommit".imports is 'Imports of tables of events: how far each has come.';
insert into "aftercommit".migrations (version, name, checksum, applied_by, breaks_older)
values (18, 'imports', '0ca44a45274a14697c10b05550a315efe1089c9205b320d9a1ff43524cf1347a',
        pg_catalog.concat_ws(' ', session_user, pg_catalog.current_setting('application_name')), false);
commit;

begin;
set local lock_timeout = 800;
set local search_path = pg_catalog, pg_temp;
-- grants: emit
-- Notes how far the import of a table has come; without a key it is finished, until its table has more rows.
create or replace function "aftercommit".advance_import(p_source text, p_after text[], p_rows integer) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
  update "aftercommit".imports i
     set after_key = coalesce(p_after, i.after_key), rows = i.rows + p_rows,
         finished_at = case when p_after is null then clock_timestamp() end
   where i.source = p_source
$aftercommit$;
revoke all on function "aftercommit"."advance_import" from public;
comment on function "aftercommit"."advance_import" is 'Notes how far the import of a table has come; without a key it is finished, until its table has more rows.';
-- grants: emit
-- Notes that a table is captured, for capture(), which runs as its caller. Refuses an aggregate type that has another source of
-- events, and a caller who may not make triggers on the table.
create or replace function "aftercommit".register_capture(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_other regclass;
begin
  if not has_table_privilege(session_user, p_relation, 'trigger') then
    raise exception 'Role % may not make triggers on %, so the table is not captured.', session_user, p_relation::regclass
      using errcode = 'AC017', hint = 'Let the owner of the table capture it.';
  end if;
  if exists (select from "aftercommit".stream_types s where s.aggregate_type = p_type)
     or exists (select from "aftercommit".workflow_instances w where w.type = p_type) then
    raise exception 'Aggregate type % has versions, as a declared stream or a workflow, so % cannot write its events.',
      p_type, p_relation::regclass using errcode = 'AC017', hint = 'Choose another: aggregate => ''…''.';
  end if;
  select t.relation into v_other from "aftercommit".captured_tables t
    join pg_class c on c.oid = t.relation
   where t.aggregate_type = p_type and t.relation <> p_relation;
  if found then
    raise exception 'Aggregate type % is that of the captured table %, so % is not captured.', p_type, v_other, p_relation::regclass
      using errcode = 'AC017', hint = 'Choose another: aggregate => ''…''.';
  end if;
  delete from "aftercommit".captured_tables t
   using pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.oid = p_relation
     and (t.relation = p_relation or t.aggregate_type = p_type or t.table_schema = n.nspname and t.table_name = c.relname);
  insert into "aftercommit".captured_tables (aggregate_type, relation, table_schema, table_name, omit, omit_numbers, on_truncate, each, unchanged)
  select p_type, c.oid, n.nspname, c.relname, p_omit,
         array(select a.attnum from pg_attribute a where a.attrelid = c.oid and a.attname = any (p_omit) and not a.attisdropped),
         p_truncate, p_each, p_unchanged
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.oid = p_relation;
end
$aftercommit$;
revoke all on function "aftercommit"."register_capture" from public;
comment on function "aftercommit"."register_capture" is 'Notes that a table is captured, for capture(), which runs as its caller. Refuses an aggregate type that has another source of events, and a caller who may not make triggers on the table.';
-- grants: emit
-- A captured table with its partitions and its inherited children.
create or replace function "aftercommit".capture_tree(p_relation oid) returns setof oid
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with recursive tree as (
    select p_relation as id
    union
    select i.inhrelid from pg_inherits i join tree t on t.id = i.inhparent)
  select t.id from tree t join pg_class c on c.oid = t.id where c.relkind in ('r', 'p')
$aftercommit$;
revoke all on function "aftercommit"."capture_tree" from public;
comment on function "aftercommit"."capture_tree" is 'A captured table with its partitions and its inherited children.';
-- grants: emit
-- The key columns of a table, in the order of the key: the primary key, else the index of its replica identity. Null where
-- there is neither.
create or replace function "aftercommit".capture_key_columns(p_relation oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select array(
      select a.attname::text
        from unnest(i.indkey::smallint[]) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
       where k.place <= i.indnkeyatts
       order by k.place)
    from pg_index i
   where i.indrelid = p_relation and (i.indisprimary or i.indisreplident and i.indisunique)
   order by i.indisprimary desc
   limit 1
$aftercommit$;
revoke all on function "aftercommit"."capture_key_columns" from public;
comment on function "aftercommit"."capture_key_columns" is 'The key columns of a table, in the order of the key: the primary key, else the index of its replica identity. Null where there is neither.';
-- grants: emit
-- The triggers that a captured table needs, on itself and on every partition and inherited child, with the statement that
-- makes each and whether it is there as it should be. A child with columns of its own is captured without them.
create or replace function "aftercommit".capture_triggers(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns table (relation oid, name text, statement text, is_there boolean)
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with root as (
    select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, "aftercommit".capture_key_columns(c.oid) as keys
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.oid = p_relation),
  tables as (
    select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, c.relispartition, c.relnatts, o.omit,
           jsonb_build_object(
             'keys', (select jsonb_agg(a.attnum::integer order by k.place)
                        from unnest(root.keys) with ordinality k (key, place)
                        join pg_attribute a on a.attrelid = c.oid and a.attname = k.key),
             'omit', (select coalesce(jsonb_agg(a.attnum::integer order by a.attnum), '[]')
                        from pg_attribute a
                       where a.attrelid = c.oid and a.attname = any (o.omit) and not a.attisdropped),
             'names', to_jsonb(p_omit)) as numbers
      from root
     cross join "aftercommit".capture_tree(root.id) t (id)
      join pg_class c on c.oid = t.id
      join pg_namespace n on n.oid = c.relnamespace
     cross join lateral (
       select array(
         select a.attname::text
           from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and (a.attname = any (p_omit) or a.attgenerated = 'v' or not exists (
              select from pg_attribute r
               where r.attrelid = root.id and r.attname = a.attname and r.attnum > 0 and not r.attisdropped))
          order by a.attnum)) o (omit)),
  wanted as (
    select t.id, format('%s_%s', left('aftercommit', 50), e.event) as name, e.event,
           format('after %s on %s referencing %s for each statement', e.event, t.name, e.rows) as part, 'capture_rows' as function,
           array[p_type, root_keys.keys::text, t.omit::text, t.relnatts::text, t.numbers::text, p_unchanged::text, root_keys.name] as args
      from tables t
     cross join (select keys, name from root) root_keys
     cross join (values ('insert', 'new table as new_rows'), ('update', 'old table as old_rows new table as new_rows'),
                   ('delete', 'old table as old_rows')) e (event, rows)
     where p_each = 'statement'
     union all
    -- Triggers of a row fire in the order of their names, and a partition has those of its parent. Nothing sorts before "!".
    select t.id, format('!%s_row', left('aftercommit', 50)), 'row',
           format('after insert or update or delete on %s for each row', t.name), 'capture_row',
           array[p_type, root_keys.keys::text, t.omit::text, t.relnatts::text, t.numbers::text, p_unchanged::text, root_keys.name]
      from tables t
     cross join (select keys, name from root) root_keys
     where p_each = 'row' and not t.relispartition
     union all
    select t.id, format('%s_truncate', left('aftercommit', 50)), 'truncate',
           format('after truncate on %s for each statement', t.name), 'capture_truncate',
           array[p_type, p_truncate, (select name from root)]
      from tables t
     where p_truncate <> 'ignore')
  select w.id, w.name,
         format('create or replace trigger %I %s execute function %I.%I(%s)', w.name, w.part, 'aftercommit', w.function,
           (select string_agg(quote_literal(a.arg), ', ' order by a.place) from unnest(w.args) with ordinality a (arg, place))),
         exists (
           select from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
            where g.tgrelid = w.id and g.tgname = w.name and g.tgenabled in ('O', 'A') and f.proname = w.function
              and n.nspname = 'aftercommit'
              and g.tgargs = (select string_agg(convert_to(a.arg, getdatabaseencoding()) || '\x00'::bytea, ''::bytea order by a.place)
                                from unnest(w.args) with ordinality a (arg, place)))
    from wanted w
   order by w.id, w.name
$aftercommit$;
revoke all on function "aftercommit"."capture_triggers" from public;
comment on function "aftercommit"."capture_triggers" is 'The triggers that a captured table needs, on itself and on every partition and inherited child, with the statement that makes each and whether it is there as it should be. A child with columns of its own is captured without them.';
-- grants: emit
-- Registers a captured table and puts its triggers in place, as its caller: for capture(), and for what mends triggers that
-- were lost. Triggers of earlier options are dropped.
create or replace function "aftercommit".apply_capture(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  r record;
begin
  perform "aftercommit".register_capture(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged);
  for r in
    select g.tgname as name, g.tgrelid::regclass as relation
      from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
     where g.tgrelid in (select "aftercommit".capture_tree(p_relation)) and not g.tgisinternal and g.tgparentid = 0
       and n.nspname = 'aftercommit' and f.proname in ('capture_rows', 'capture_row', 'capture_truncate')
       and not exists (
         select from "aftercommit".capture_triggers(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged) w
          where w.relation = g.tgrelid and w.name = g.tgname)
  loop
    execute format('drop trigger %I on %s', r.name, r.relation);
  end loop;
  for r in
    select w.relation::regclass as relation, w.name, w.statement
      from "aftercommit".capture_triggers(p_relation, p_type, p_omit, p_truncate, p_each, p_unchanged) w where not w.is_there
  loop
    execute r.statement;
    execute format('alter table %s enable trigger %I', r.relation, r.name);
  end loop;
end
$aftercommit$;
revoke all on function "aftercommit"."apply_capture" from public;
comment on function "aftercommit"."apply_capture" is 'Registers a captured table and puts its triggers in place, as its caller: for capture(), and for what mends triggers that were lost. Triggers of earlier options are dropped.';
-- grants: emit
-- How far the backfill of a captured table has come, its row locked: of two that run at once, one waits for the batch of the other.
create or replace function "aftercommit".backfill_state(p_relation oid, out o_type text, out o_after text[], out o_is_finished boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  select b.aggregate_type, b.after_key, b.finished_at is not null into o_type, o_after, o_is_finished
    from "aftercommit".backfills b join "aftercommit".captured_tables t on t.aggregate_type = b.aggregate_type
   where t.relation = p_relation
     for update of b;
end
$aftercommit$;
revoke all on function "aftercommit"."backfill_state" from public;
comment on function "aftercommit"."backfill_state" is 'How far the backfill of a captured table has come, its row locked: of two that run at once, one waits for the batch of the other.';
-- grants: emit
-- The expression that reads a row r which to_jsonb refuses, column by column. Columns that cannot be read at all are named
-- under the empty name, which no column can have.
create or replace function "aftercommit".capture_image(p_relation oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select format('(select coalesce(jsonb_object_agg(c.name, c.value) filter (where c.value is not null), ''{}'')
      || case when bool_or(c.value is null) then jsonb_build_object('''', jsonb_agg(c.name) filter (where c.value is null)) else ''{}'' end
    from (values %s) c (name, value))',
    string_agg(format('(%L, %I.capture_value(r.%I))', a.attname, 'aftercommit', a.attname), ', ' order by a.attnum))
    from pg_attribute a
   where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
$aftercommit$;
revoke all on function "aftercommit"."capture_image" from public;
comment on function "aftercommit"."capture_image" is 'The expression that reads a row r which to_jsonb refuses, column by column. Columns that cannot be read at all are named under the empty name, which no column can have.';
-- grants: emit
-- Captured tables with what has become of each: the table it is now, after a rename or when it was dropped and made again
-- (null where it is gone), the columns that are left out under their present names, and the triggers that are missing or
-- differ, with the statements that make them.
create or replace function "aftercommit".captured()
returns table (aggregate_type text, table_name text, relation oid, omit text[], truncate text, each text, unchanged boolean,
  captured_at timestamptz, missing text[], statements text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $aftercommit$
  select t.aggregate_type, case when c.oid is null then format('%I.%I', t.table_schema, t.table_name) else format('%I.%I', n.nspname, c.relname) end,
         c.oid, o.omit, t.on_truncate, t.each, t.unchanged, t.captured_at,
         coalesce(g.missing, '{}'), coalesce(g.statements, '{}')
    from "aftercommit".captured_tables t
    left join pg_class c on c.oid = coalesce(
      (select r.oid from pg_class r where r.oid = t.relation),
      to_regclass(format('%I.%I', t.table_schema, t.table_name)))
    left join pg_namespace n on n.oid = c.relnamespace
   cross join lateral (
     select array(
       select unnest(t.omit)
        union
       select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and c.oid = t.relation and a.attnum = any (t.omit_numbers) and not a.attisdropped
        order by 1)) o (omit)
    left join lateral (
      select array_agg(format('%s on %s', w.name, w.relation::regclass)) as missing, array_agg(w.statement) as statements
        from "aftercommit".capture_triggers(c.oid, t.aggregate_type, o.omit, t.on_truncate, t.each, t.unchanged) w
       where not w.is_there) g on true
   order by t.aggregate_type
$aftercommit$;
revoke all on function "aftercommit"."captured" from public;
comment on function "aftercommit"."captured" is 'Captured tables with what has become of each: the table it is now, after a rename or when it was dropped and made again (null where it is gone), the columns that are left out under their present names, and the triggers that are missing or differ, with the statements that make them.';
-- grants: emit
-- A text of more than 255 characters becomes its first 200 and a hash of the whole, so that different texts stay different.
create or replace function "aftercommit".capture_short(p_text text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  if length(p_text) <= 255 then return p_text; end if;
  return left(p_text, 200) || '~' || left(encode(sha256(convert_to(p_text, 'UTF8')), 'hex'), 32);
end
$aftercommit$;
revoke all on function "aftercommit"."capture_short" from public;
comment on function "aftercommit"."capture_short" is 'A text of more than 255 characters becomes its first 200 and a hash of the whole, so that different texts stay different.';
-- grants: none
-- The metadata and tenant of what a statement changes, from the settings of the session. All changes of a transaction share
-- one correlation id when the session names none. Raises AC006 where the chain of causes is too long: that ends a loop
-- through a captured table, and nothing else may stop a write, so an odd setting is cut or passed over.
create or replace function "aftercommit".capture_context(p_type text, p_table text, p_max_depth integer, out o_metadata jsonb, out o_tenant text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_depth integer := substring(current_setting('aftercommit.depth', true) from '^\d{1,9}$');
begin
  -- The maker of a trigger chooses its arguments: versions of a stream, and our own types, must not be forged by it.
  if p_type ~ '^aftercommit(\.|$)' or exists (select from "aftercommit".stream_types s where s.aggregate_type = p_type) then
    raise exception '% cannot be captured as %, which is a stream or one of our own types; nothing was written to it.', p_table, p_type
      using errcode = 'AC017';
  end if;
  if v_depth > p_max_depth then
    raise exception 'A change of % would be event number % in a chain of causes, more than %; nothing was written to it.',
      p_table, v_depth, p_max_depth using errcode = 'AC006', hint = 'An event probably causes itself.';
  end if;
  o_metadata := jsonb_build_object('captured_from', p_table, 'correlation_id',
    coalesce(nullif(current_setting('aftercommit.correlation_id', true), ''),
      'tx-' || to_hex((extract(epoch from now()) * 1000000)::bigint) || '-' || pg_current_xact_id()::text));
  if concat(current_setting('aftercommit.user_id', true), current_setting('aftercommit.causation_id', true),
       current_setting('aftercommit.traceparent', true), current_setting('aftercommit.actor_type', true),
       current_setting('aftercommit.acting_for', true), nullif(v_depth, 0)) <> '' then
    o_metadata := o_metadata || jsonb_strip_nulls(jsonb_build_object(
      'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
      'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
      'traceparent', nullif(current_setting('aftercommit.traceparent', true), ''),
      'actor_type', nullif(current_setting('aftercommit.actor_type', true), ''),
      'acting_for', nullif(current_setting('aftercommit.acting_for', true), ''),
      'depth', nullif(v_depth, 0)));
  end if;
  o_tenant := nullif(current_setting('aftercommit.tenant', true), '');
  if length(o_tenant) > 255 then o_tenant := "aftercommit".capture_short(o_tenant); end if;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_context" from public;
comment on function "aftercommit"."capture_context" is 'The metadata and tenant of what a statement changes, from the settings of the session. All changes of a transaction share one correlation id when the session names none. Raises AC006 where the chain of causes is too long: that ends a loop through a captured table, and nothing else may stop a write, so an odd setting is cut or passed over.';
-- grants: emit
-- A UUIDv7 also on servers that have no uuidv7(): 48 bits of milliseconds laid over a random UUID, version bits set.
-- In PL/pgSQL: a function in SQL that sets its search_path is parsed and planned again in each transaction.
create or replace function "aftercommit".new_id() returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid::text;
end
$aftercommit$;
revoke all on function "aftercommit"."new_id" from public;
comment on function "aftercommit"."new_id" is 'A UUIDv7 also on servers that have no uuidv7(): 48 bits of milliseconds laid over a random UUID, version bits set. In PL/pgSQL: a function in SQL that sets its search_path is parsed and planned again in each transaction.';
-- grants: emit
-- The aggregate id of a key that is not one short text: the parts of a composite key are joined by commas, with \ before a
-- comma or \ of a part; an empty key is written as ""; a key of more than 255 characters is its first 200 and a hash.
create or replace function "aftercommit".capture_uncommon_key(p_image jsonb, p_keys text[]) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_key text;
begin
  if cardinality(p_keys) = 1 then
    v_key := p_image ->> p_keys[1];
  else
    select string_agg(replace(replace(p_image ->> k.name, '\', '\\'), ',', '\,'), ',' order by k.place)
      into v_key
      from unnest(p_keys) with ordinality k (name, place);
  end if;
  return "aftercommit".capture_short(case when v_key = '' then '""' else v_key end);
end
$aftercommit$;
revoke all on function "aftercommit"."capture_uncommon_key" from public;
comment on function "aftercommit"."capture_uncommon_key" is E'The aggregate id of a key that is not one short text: the parts of a composite key are joined by commas, with \\ before a comma or \\ of a part; an empty key is written as ""; a key of more than 255 characters is its first 200 and a hash.';
-- grants: emit
-- The aggregate id of a row. Without settings of its own, so that Postgres writes it into the caller's statement: only
-- functions that pin search_path call it.
create or replace function "aftercommit".capture_key(p_image jsonb, p_keys text[]) returns text
language sql stable as $aftercommit$
  select case when cardinality(p_keys) = 1 and length(p_image ->> p_keys[1]) between 1 and 255
    then p_image ->> p_keys[1] else "aftercommit".capture_uncommon_key(p_image, p_keys) end
$aftercommit$;
revoke all on function "aftercommit"."capture_key" from public;
comment on function "aftercommit"."capture_key" is 'The aggregate id of a row. Without settings of its own, so that Postgres writes it into the caller''s statement: only functions that pin search_path call it.';
-- grants: none
-- Whether columns of an image may have to be left out: it is longer than the limit, or could nest too deep, which takes more than 500
-- bytes. Inlined by the planner, and therefore without settings of its own.
create or replace function "aftercommit".capture_is_large(p_image jsonb, p_limit bigint) returns boolean
language sql stable as $aftercommit$
  select pg_catalog.octet_length(p_image::text) operator(pg_catalog.>) p_limit
    or pg_catalog.pg_column_size(p_image) operator(pg_catalog.>) 500
      and pg_catalog.jsonb_path_exists(p_image, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")')
$aftercommit$;
revoke all on function "aftercommit"."capture_is_large" from public;
comment on function "aftercommit"."capture_is_large" is 'Whether columns of an image may have to be left out: it is longer than the limit, or could nest too deep, which takes more than 500 bytes. Inlined by the planner, and therefore without settings of its own.';
-- grants: none
-- The columns to leave out: those that nest deeper than the limit of the log, then the largest, so that no image of the row is
-- longer than the limit. Keys stay. Null where nothing has to go.
create or replace function "aftercommit".capture_oversized(p_old jsonb, p_new jsonb, p_keys text[], p_limit bigint) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_too_deep jsonpath;
  v_names text[];
  r record;
begin
  select format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', max_nesting - 1)::jsonpath
    into v_too_deep from "aftercommit".settings;
  v_names := array(
    select distinct c.key
      from (select * from jsonb_each(p_old) union all select * from jsonb_each(p_new)) c
     where c.key <> all (p_keys) and jsonb_path_exists(c.value, v_too_deep));
  for r in
    select c.key as name, max(octet_length(c.value::text)) as size
      from (select * from jsonb_each(p_old) union all select * from jsonb_each(p_new)) c
     where c.key <> all (p_keys || v_names)
     group by c.key
     order by size desc, name
  loop
    exit when coalesce(octet_length((p_old - v_names)::text), 0) <= p_limit
      and coalesce(octet_length((p_new - v_names)::text), 0) <= p_limit;
    v_names := v_names || r.name;
  end loop;
  return nullif(v_names, '{}');
end
$aftercommit$;
revoke all on function "aftercommit"."capture_oversized" from public;
comment on function "aftercommit"."capture_oversized" is 'The columns to leave out: those that nest deeper than the limit of the log, then the largest, so that no image of the row is longer than the limit. Keys stay. Null where nothing has to go.';
-- grants: emit
-- Writes the events of existing rows of a captured table, and how far the backfill has come, in one transaction. The rows come
-- from backfill_batch, which reads them as its caller.
create or replace function "aftercommit".write_existing(p_type text, p_images jsonb[], p_after text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_table record;
  v_keys text[];
  v_settings record;
  v_metadata jsonb;
  v_tenant text;
begin
  select c.relation, c.table_name, c.omit into v_table from "aftercommit".captured() c where c.aggregate_type = p_type;
  if not found or not has_table_privilege(session_user, v_table.relation, 'select') then
    raise exception 'Role % may not backfill %, so nothing was emitted.', session_user, p_type using errcode = 'AC017';
  end if;
  v_keys := "aftercommit".capture_key_columns(v_table.relation);
  select least(s.max_payload, 3000000) as max_payload, s.max_depth into v_settings from "aftercommit".settings s;
  select * into v_metadata, v_tenant from "aftercommit".capture_context(p_type, v_table.table_name, v_settings.max_depth);
  insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
  select "aftercommit".new_id(), p_type || '.existing', p_type, "aftercommit".capture_key(p.image, v_keys), v_tenant, p.image - p.lost,
         case when p.lost = '{}' then v_metadata else v_metadata || jsonb_build_object('omitted', to_jsonb(p.lost)) end,
         clock_timestamp()
    from (select i.image - v_table.omit - '' as image, i.place,
                 array(select jsonb_array_elements_text(coalesce(i.image -> '', '[]')))
                 || case when "aftercommit".capture_is_large(i.image - v_table.omit, v_settings.max_payload)
                      then coalesce("aftercommit".capture_oversized(null, i.image - v_table.omit - '', v_keys, v_settings.max_payload), '{}')
                      else '{}' end as lost
            from unnest(p_images) with ordinality i (image, place)) p
   order by p.place;
  update "aftercommit".backfills b
     set rows = b.rows + coalesce(cardinality(p_images), 0), after_key = coalesce(p_after, b.after_key),
         finished_at = case when p_after is null then clock_timestamp() end
   where b.aggregate_type = p_type;
end
$aftercommit$;
revoke all on function "aftercommit"."write_existing" from public;
comment on function "aftercommit"."write_existing" is 'Writes the events of existing rows of a captured table, and how far the backfill has come, in one transaction. The rows come from backfill_batch, which reads them as its caller.';
-- grants: emit
-- Makes events of the next rows of a captured table, by the order of their keys, and answers how many; 0 at the end. Runs as its
-- caller, who must be able to read and lock the rows: a row is locked until the transaction ends, so that its event comes before
-- those of later changes.
create or replace function "aftercommit".backfill_batch(p_relation oid, p_rows integer default 1000) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set plan_cache_mode = force_custom_plan as $aftercommit$
declare
  v_state record;
  v_keys text;
  v_texts text;
  v_after text;
  v_query text;
  v_images jsonb[];
  v_last jsonb;
begin
  select * into v_state from "aftercommit".backfill_state(p_relation);
  if v_state.o_type is null or v_state.o_is_finished then return 0; end if;
  select string_agg(format('t.%I', k.name), ', ' order by k.place), string_agg(format('t.%I::text', k.name), ', ' order by k.place),
         string_agg(format('%L::%s', v_state.o_after[k.place], format_type(a.atttypid, a.atttypmod)), ', ' order by k.place)
    into v_keys, v_texts, v_after
    from unnest("aftercommit".capture_key_columns(p_relation)) with ordinality k (name, place)
    join pg_attribute a on a.attrelid = p_relation and a.attname = k.name;
  v_query := format(
    'select array_agg(r.image order by r.place), (array_agg(to_jsonb(r.key) order by r.place desc))[1]
       from (select row_number() over () as place, b.* from (
         select {image} as image, array[%s] as key from %s t %s order by %s limit %s for share of t) b) r',
    v_texts, p_relation::regclass,
    case when v_state.o_after is not null then format('where (%s) > (%s)', v_keys, v_after) else '' end, v_keys, p_rows);
  begin
    execute replace(v_query, '{image}', 'to_jsonb(t.*)') into v_images, v_last;
  exception when data_exception or program_limit_exceeded then
    execute replace(v_query, '{image}', replace("aftercommit".capture_image(p_relation), 'capture_value(r.', 'capture_value(t.')) into v_images, v_last;
  end;
  perform "aftercommit".write_existing(v_state.o_type, v_images,
    case when v_last is not null then array(select jsonb_array_elements_text(v_last)) end);
  return coalesce(cardinality(v_images), 0);
end
$aftercommit$;
revoke all on function "aftercommit"."backfill_batch" from public;
comment on function "aftercommit"."backfill_batch" is 'Makes events of the next rows of a captured table, by the order of their keys, and answers how many; 0 at the end. Runs as its caller, who must be able to read and lock the rows: a row is locked until the transaction ends, so that its event comes before those of later changes.';
-- grants: emit
-- Begins the backfill of a captured table, or goes on with one that ended early. One that is finished stays so, unless it is asked
-- for again. True where rows are left.
create or replace function "aftercommit".begin_backfill(p_relation oid, p_again boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_type text;
begin
  select c.aggregate_type into v_type from "aftercommit".captured() c where c.relation = p_relation;
  if not found then
    raise exception '% is not captured, so its rows have no events; nothing was emitted.', p_relation::regclass
      using errcode = 'AC017', hint = 'Capture it first: then no change falls between the existing rows and the captured ones.';
  end if;
  if not has_table_privilege(session_user, p_relation, 'select') then
    raise exception 'Role % may not read %, so nothing was emitted.', session_user, p_relation::regclass using errcode = 'AC017';
  end if;
  insert into "aftercommit".backfills as b (aggregate_type) values (v_type)
  on conflict (aggregate_type) do update set after_key = null, rows = 0, started_at = clock_timestamp(), finished_at = null
    where p_again and b.finished_at is not null;
  return exists (select from "aftercommit".backfills b where b.aggregate_type = v_type and b.finished_at is null);
end
$aftercommit$;
revoke all on function "aftercommit"."begin_backfill" from public;
comment on function "aftercommit"."begin_backfill" is 'Begins the backfill of a captured table, or goes on with one that ended early. One that is finished stays so, unless it is asked for again. True where rows are left.';
-- grants: emit
-- The aggregate type of a captured table when none is given: the name of the table in the singular, orders → order. Null
-- where that is no name for events.
create or replace function "aftercommit".capture_default_type(p_table text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $aftercommit$
  select case when t ~ '^[a-z][a-z0-9_]*$' and t not like 'aftercommit%' then t end
    from (select case
      when p_table ~ '[^e]ies$' then regexp_replace(p_table, 'ies$', 'y')
      when p_table ~ '(ss|x|ch|sh)es$' then regexp_replace(p_table, 'es$', '')
      when p_table ~ '[^sui]s$' then regexp_replace(p_table, 's$', '')
      else p_table end) s (t)
$aftercommit$;
revoke all on function "aftercommit"."capture_default_type" from public;
comment on function "aftercommit"."capture_default_type" is 'The aggregate type of a captured table when none is given: the name of the table in the singular, orders → order. Null where that is no name for events.';
-- grants: emit
-- Turns row changes of a table into events, whoever makes them: order.created, order.updated, order.deleted, order.truncated.
-- Runs as its caller, who needs the right to make triggers on the table. Calling it again changes the options. Answers what it
-- did. `omit` names columns to leave out; `truncate` is 'event', 'deny' or 'ignore'; `each` is 'statement' or 'row', and must be
-- chosen for a table with row triggers of its own; `unchanged` makes an UPDATE that changes nothing an event.
create or replace function "aftercommit".capture(
  relation regclass, aggregate text default null, omit text[] default '{}', truncate text default 'event',
  each text default null, unchanged boolean default false)
returns text
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_table record;
  v_type text;
  v_reason text;
  v_others text;
  v_keys text[];
  v_each text := coalesce(each, 'statement');
  v_own text;
begin
  select c.oid as id, c.relkind, c.relpersistence, c.relispartition, c.relname, n.nspname, format('%I.%I', n.nspname, c.relname) as name
    into v_table
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation;
  v_type := coalesce(aggregate, "aftercommit".capture_default_type(v_table.relname));
  v_keys := "aftercommit".capture_key_columns(v_table.id);
  select string_agg(format('%I', g.tgname), ', ' order by g.tgname) into v_others
    from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
   where g.tgrelid in (select "aftercommit".capture_tree(v_table.id)) and not g.tgisinternal and g.tgenabled <> 'D'
     and g.tgtype & 1 = 1 and g.tgtype & 2 = 0 and g.tgtype & 28 <> 0 and n.nspname <> 'aftercommit';
  v_reason := case
    when v_table.id is null then 'there is no such table'
    when v_table.relkind = 'v' then 'it is a view; capture the tables behind it'
    when v_table.relkind = 'm' then 'it is a materialized view, which changes only when it is refreshed'
    when v_table.relkind = 'f' then 'it is a foreign table, which can change without this server'
    when v_table.relkind not in ('r', 'p') then 'it is no table'
    when v_table.relpersistence = 't' then 'it is a temporary table'
    when v_table.nspname in ('aftercommit', 'pg_catalog', 'information_schema') then 'it belongs to the system'
    when v_table.relispartition then format('it is a partition; capture %s instead', pg_partition_root(v_table.id)::regclass)
    when exists (select from pg_inherits i where i.inhrelid = v_table.id) then
      format('it inherits from %s; capture that table, and this one is captured with it',
        (select i.inhparent::regclass from pg_inherits i where i.inhrelid = v_table.id order by i.inhseqno limit 1))
    when coalesce(v_keys, '{}') = '{}' then 'it has no primary key, so its rows have no id; add one, or set a unique index as its replica identity'
    when v_type is null then format('its name %L gives no name for events; choose one: aggregate => ''…''', v_table.relname)
    when v_type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' or length(v_type) > 180 then
      format('%L is no name like order; it begins the types of the events', v_type)
    when v_type ~ '^aftercommit(\.|$)' then 'types that begin with aftercommit are its own'
    when truncate is null or truncate not in ('event', 'deny', 'ignore') then 'truncate must be ''event'', ''deny'' or ''ignore'''
    when v_each not in ('statement', 'row') then 'each must be ''statement'' or ''row'''
    when omit is null or unchanged is null then 'omit and unchanged must not be null'
    when v_keys && omit then format('a key column cannot be left out: %s', array_to_string(v_keys, ', '))
    when exists (select from unnest(omit) o (name) where not exists (
      select from pg_attribute a where a.attrelid = v_table.id and a.attname = o.name and a.attnum > 0 and not a.attisdropped)) then
      format('it has no column %s to leave out', (select string_agg(quote_ident(o.name), ', ') from unnest(omit) o (name) where not exists (
        select from pg_attribute a where a.attrelid = v_table.id and a.attname = o.name and a.attnum > 0 and not a.attisdropped)))
    when each is null and v_others is not null then
      format('it has row triggers of its own (%s). If they write to this table, choose each => ''row'', which keeps the order of '
        'events right; otherwise each => ''statement'', which is faster', v_others)
  end;
  if v_reason is not null then
    raise exception '% is not captured: %.', coalesce(v_table.name, relation::text), v_reason using errcode = 'AC017';
  end if;

  perform "aftercommit".apply_capture(v_table.id, v_type, omit, truncate, v_each, unchanged);
  select string_agg(format('%s.%s', c.oid::regclass, a.attname), ', ') into v_own
    from "aftercommit".capture_tree(v_table.id) t (id)
    join pg_class c on c.oid = t.id and c.oid <> v_table.id and not c.relispartition
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attislocal and a.attinhcount = 0;
  return format('%s is captured: %s.created, .updated, .deleted%s', v_table.name, v_type,
      case truncate when 'event' then ', .truncated' when 'deny' then '; TRUNCATE is denied' else '; TRUNCATE is ignored' end)
    || coalesce('; columns that only a child has are left out: ' || v_own, '')
    || coalesce((select format('; virtual columns are left out: %s', string_agg(quote_ident(a.attname), ', ' order by a.attnum))
          from pg_attribute a where a.attrelid = v_table.id and a.attgenerated = 'v' and not a.attisdropped having count(*) > 0), '');
end
$aftercommit$;
revoke all on function "aftercommit"."capture" from public;
comment on function "aftercommit"."capture" is 'Turns row changes of a table into events, whoever makes them: order.created, order.updated, order.deleted, order.truncated. Runs as its caller, who needs the right to make triggers on the table. Calling it again changes the options. Answers what it did. `omit` names columns to leave out; `truncate` is ''event'', ''deny'' or ''ignore''; `each` is ''statement'' or ''row'', and must be chosen for a table with row triggers of its own; `unchanged` makes an UPDATE that changes nothing an event.';
-- grants: none
-- The present names of key and left out columns, by their numbers: columns were renamed, added or dropped since the trigger
-- was made. Virtual columns are left out too, because a trigger does not see their values.
create or replace function "aftercommit".capture_names(p_relation oid, p_numbers jsonb, out o_keys text[], out o_omit text[])
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select array(
      select a.attname::text
        from jsonb_array_elements_text(p_numbers -> 'keys') with ordinality k (number, place)
        join pg_attribute a on a.attrelid = p_relation and a.attnum = k.number::smallint
       order by k.place),
    array(
      select a.attname::text
        from pg_attribute a
       where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
         and (p_numbers -> 'omit' @> to_jsonb(a.attnum::integer) or p_numbers -> 'names' ? a.attname::text
              or a.attgenerated = 'v'))
$aftercommit$;
revoke all on function "aftercommit"."capture_names" from public;
comment on function "aftercommit"."capture_names" is 'The present names of key and left out columns, by their numbers: columns were renamed, added or dropped since the trigger was made. Virtual columns are left out too, because a trigger does not see their values.';
-- grants: none
-- Writes what one changed row means: one event, none for an UPDATE that changed nothing, or deleted and created for a
-- changed key. Takes the arguments of the trigger. An image names columns that could not be read under the empty name, which
-- no column can have.
create or replace function "aftercommit".capture_one(p_relation oid, p_args text[], p_old jsonb, p_new jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_type text := p_args[0];
  v_keys text[] := p_args[1];
  v_omit text[] := p_args[2];
  v_old jsonb;
  v_new jsonb;
  v_old_key text;
  v_new_key text;
  v_changes jsonb;
  v_lost text[] := '{}';
  v_max_payload bigint;
  v_max_depth integer;
  v_columns smallint;
  v_metadata jsonb;
  v_tenant text;
begin
  select least(s.max_payload, 3000000), s.max_depth, c.relnatts into v_max_payload, v_max_depth, v_columns
    from "aftercommit".settings s, pg_class c where c.oid = p_relation;
  if v_columns <> p_args[3]::smallint or not coalesce(p_new, p_old) ?& (v_keys || v_omit) then
    select * into v_keys, v_omit from "aftercommit".capture_names(p_relation, p_args[4]::jsonb);
  end if;
  select * into v_metadata, v_tenant from "aftercommit".capture_context(v_type, p_args[6], v_max_depth);
  v_old := p_old - v_omit;
  v_new := p_new - v_omit;
  v_old_key := "aftercommit".capture_key(p_old, v_keys);
  v_new_key := "aftercommit".capture_key(p_new, v_keys);
  if p_old ? '' or p_new ? '' then
    v_lost := array(select jsonb_array_elements_text(coalesce(p_old -> '', '[]') || coalesce(p_new -> '', '[]')));
    v_old := v_old - '' - v_lost;
    v_new := v_new - '' - v_lost;
  end if;
  if "aftercommit".capture_is_large(v_old, v_max_payload) or "aftercommit".capture_is_large(v_new, v_max_payload) then
    v_lost := v_lost || coalesce("aftercommit".capture_oversized(v_old, v_new, v_keys, v_max_payload), '{}');
    v_old := v_old - v_lost;
    v_new := v_new - v_lost;
  end if;
  if v_lost <> '{}' then v_metadata := v_metadata || jsonb_build_object('omitted', to_jsonb(v_lost)); end if;

  if v_old_key = v_new_key then
    select jsonb_object_agg(c.key, jsonb_build_object('old', v_old -> c.key, 'new', c.value)) into v_changes
      from jsonb_each(v_new) c
     where c.value is distinct from v_old -> c.key;
    if v_changes is null and v_lost = '{}' and not p_args[5]::boolean then return; end if;
    insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
    values ("aftercommit".new_id(), v_type || '.updated', v_type, v_new_key, v_tenant, v_new, coalesce(v_changes, '{}'), v_old,
      v_metadata, clock_timestamp());
    return;
  end if;
  if v_old is not null then
    insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
    values ("aftercommit".new_id(), v_type || '.deleted', v_type, v_old_key, v_tenant, v_old,
      case when v_new is null then v_metadata else v_metadata || jsonb_build_object('key_changed_to', v_new_key) end,
      clock_timestamp());
  end if;
  if v_new is not null then
    insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
    values ("aftercommit".new_id(), v_type || '.created', v_type, v_new_key, v_tenant, v_new,
      case when v_old is null then v_metadata else v_metadata || jsonb_build_object('key_changed_from', v_old_key) end,
      clock_timestamp());
  end if;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_one" from public;
comment on function "aftercommit"."capture_one" is 'Writes what one changed row means: one event, none for an UPDATE that changed nothing, or deleted and created for a changed key. Takes the arguments of the trigger. An image names columns that could not be read under the empty name, which no column can have.';
-- grants: emit
-- Trigger of a table captured with each => 'row': writes the event of one row as soon as the row is written, so that it comes
-- before events of rows that the table's own row triggers write. Arguments as in capture_rows; a partition has those of its
-- root.
create or replace function "aftercommit".capture_row() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' as $aftercommit$
declare
  v_old jsonb;
  v_new jsonb;
  v_image text;
begin
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  begin
    if tg_op <> 'INSERT' then v_old := to_jsonb(old); end if;
    if tg_op <> 'DELETE' then v_new := to_jsonb(new); end if;
  exception when data_exception or program_limit_exceeded then
    v_image := format('select %s from (select ($1).*) r', "aftercommit".capture_image(tg_relid));
    if tg_op <> 'INSERT' then execute v_image into v_old using old; end if;
    if tg_op <> 'DELETE' then execute v_image into v_new using new; end if;
  end;
  perform "aftercommit".capture_one(coalesce(pg_partition_root(tg_relid), tg_relid), tg_argv, v_old, v_new);
  return null;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_row" from public;
comment on function "aftercommit"."capture_row" is 'Trigger of a table captured with each => ''row'': writes the event of one row as soon as the row is written, so that it comes before events of rows that the table''s own row triggers write. Arguments as in capture_rows; a partition has those of its root.';
-- grants: emit
-- Trigger of a captured table: writes the events of one statement, inside its transaction. One changed row takes a path
-- without a join. More rows are one EXECUTE: its plan knows how many rows there are, while a cached plan, made for few
-- rows, would compare each old row with each new one. The settings pinned here keep what is written independent of the
-- session. Arguments: aggregate type, key columns, left out columns, number of columns of the table, the numbers of those
-- columns, whether an UPDATE that changes nothing is an event, the table.
create or replace function "aftercommit".capture_rows() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set jit = off as $aftercommit$
declare
  v_olds jsonb[] := '{}';
  v_news jsonb[] := '{}';
  v_keys text[] := tg_argv[1];
  v_omit text[] := tg_argv[2];
  v_columns smallint;
  v_max_payload bigint;
  v_max_depth integer;
  v_metadata jsonb;
  v_tenant text;
  v_surplus bigint;
  v_image text;
  -- As new_id(), which would be called for every row. $8 is the time.
  v_id constant text := 'encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing $8 from 1 for 6), 52, 1), 53, 1), ''hex'')::uuid::text';
  v_time bytea := substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3);
  r record;
begin
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  begin
    if tg_op <> 'INSERT' then v_olds := array(select to_jsonb(o.*) from old_rows o limit 2); end if;
    if tg_op <> 'DELETE' then v_news := array(select to_jsonb(n.*) from new_rows n limit 2); end if;
  exception when data_exception or program_limit_exceeded then
    v_olds := null;
  end;
  if v_olds = '{}' and v_news = '{}' then return null; end if;
  if cardinality(v_olds) < 2 and cardinality(v_news) < 2 then
    perform "aftercommit".capture_one(tg_relid, tg_argv, v_olds[1], v_news[1]);
    return null;
  end if;

  -- A BEFORE trigger of a partition can refuse a row that moves there, so that its old row has no new one.
  if tg_op = 'UPDATE' then
    select count(*) - (select count(*) from new_rows) into v_surplus from old_rows;
  end if;
  if v_olds is not null then
    select least(s.max_payload, 3000000), s.max_depth, c.relnatts into v_max_payload, v_max_depth, v_columns
      from "aftercommit".settings s, pg_class c where c.oid = tg_relid;
    if v_columns <> tg_argv[3]::smallint or not coalesce(v_news[1], v_olds[1]) ?& (v_keys || v_omit) then
      select * into v_keys, v_omit from "aftercommit".capture_names(tg_relid, tg_argv[4]::jsonb);
    end if;
    select * into v_metadata, v_tenant from "aftercommit".capture_context(tg_argv[0], tg_argv[6], v_max_depth);
    begin
      if tg_op = 'UPDATE' then
        execute replace(replace($update$
          insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
          select {id}, $1 || e.kind, $1, e.key, $6, e.payload, e.changes, e.previous,
                 case when e.link is null and p.lost is null then $5
                   else $5 || coalesce(e.link, '{}') || case when p.lost is null then '{}' else jsonb_build_object('omitted', to_jsonb(p.lost)) end end,
                 clock_timestamp()
            from (select place, lost, case when lost is null then old else old - lost end as old,
                         case when lost is null then new else new - lost end as new,
                         "aftercommit".capture_key(old, $2) as old_key, "aftercommit".capture_key(new, $2) as new_key
                    from (select o.place, o.old, n.new,
                                 case when "aftercommit".capture_is_large(o.old, $4) or "aftercommit".capture_is_large(n.new, $4)
                                   then "aftercommit".capture_oversized(o.old, n.new, $2, $4) end as lost
                            from (select row_number() over () as place, to_jsonb(r.*) - $3 as old from old_rows r) o
                            full join (select row_number() over () as place, to_jsonb(r.*) - $3 as new from new_rows r) n on {join}
                          offset 0) i
                  offset 0) p
           cross join lateral (
             select '.updated' as kind, p.new_key as key, p.new as payload, p.old as previous, null::jsonb as link, 1 as turn,
                    (select jsonb_object_agg(c.key, jsonb_build_object('old', p.old -> c.key, 'new', c.value))
                       from jsonb_each(p.new) c
                      where c.value is distinct from p.old -> c.key) as changes
              where p.old_key = p.new_key
              union all
             select '.deleted', p.old_key, p.old, null, jsonb_strip_nulls(jsonb_build_object('key_changed_to', p.new_key)), 0, null
              where p.old_key is distinct from p.new_key and p.old_key is not null
              union all
             select '.created', p.new_key, p.new, null, jsonb_strip_nulls(jsonb_build_object('key_changed_from', p.old_key)), 1, null
              where p.old_key is distinct from p.new_key and p.new_key is not null) e
           where e.kind <> '.updated' or e.changes is not null or $7 or p.lost is not null
           order by e.turn, p.place$update$, '{id}', v_id), '{join}',
          case when v_surplus = 0 then 'n.place = o.place'
            else $join$"aftercommit".capture_key(n.new, $2) = "aftercommit".capture_key(o.old, $2)$join$ end)
          using tg_argv[0], v_keys, v_omit, v_max_payload, v_metadata, v_tenant, tg_argv[5]::boolean, v_time;
      else
        execute replace(replace(replace($rows$
          insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
          select {id}, $1 || {kind}, $1, "aftercommit".capture_key(p.image, $2), $6, case when p.lost is null then p.image else p.image - p.lost end,
                 case when p.lost is null then $5 else $5 || jsonb_build_object('omitted', to_jsonb(p.lost)) end, clock_timestamp()
            from (select i.image, case when "aftercommit".capture_is_large(i.image, $4)
                            then "aftercommit".capture_oversized(null, i.image, $2, $4) end as lost
                    from (select to_jsonb(r.*) - $3 as image from {table} r offset 0) i
                  offset 0) p$rows$, '{id}', v_id),
            '{kind}', case tg_op when 'INSERT' then '''.created''' else '''.deleted''' end),
            '{table}', case tg_op when 'INSERT' then 'new_rows' else 'old_rows' end)
          using tg_argv[0], v_keys, v_omit, v_max_payload, v_metadata, v_tenant, null::boolean, v_time;
      end if;
      return null;
    exception when data_exception or program_limit_exceeded then
      null;
    end;
  end if;

  -- A value that jsonb cannot hold: row by row, and each row column by column.
  v_image := "aftercommit".capture_image(tg_relid);
  for r in execute case tg_op
    when 'INSERT' then format('select null::jsonb as old, %s as new from new_rows r', v_image)
    when 'DELETE' then format('select %s as old, null::jsonb as new from old_rows r', v_image)
    else format('select o.image as old, n.image as new
                   from (select row_number() over () as place, %1$s as image from old_rows r) o
                   full join (select row_number() over () as place, %1$s as image from new_rows r) n using (place)
                  order by place', v_image) end
  loop
    perform "aftercommit".capture_one(tg_relid, tg_argv, r.old, r.new);
  end loop;
  return null;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_rows" from public;
comment on function "aftercommit"."capture_rows" is 'Trigger of a captured table: writes the events of one statement, inside its transaction. One changed row takes a path without a join. More rows are one EXECUTE: its plan knows how many rows there are, while a cached plan, made for few rows, would compare each old row with each new one. The settings pinned here keep what is written independent of the session. Arguments: aggregate type, key columns, left out columns, number of columns of the table, the numbers of those columns, whether an UPDATE that changes nothing is an event, the table.';
-- grants: emit
-- Trigger of a captured table: TRUNCATE is one event, or is denied. TRUNCATE of a parent fires the parent's trigger first: it
-- lists its children in a setting of the transaction, and each child strikes itself off instead of writing an event.
-- Arguments: aggregate type, 'event' or 'deny', the captured table.
create or replace function "aftercommit".capture_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_awaited oid[];
  v_max_depth integer;
  v_metadata jsonb;
  v_tenant text;
begin
  if tg_argv[1] = 'deny' then
    raise exception 'TRUNCATE of % is denied, because it is captured with truncate => ''deny''; nothing was removed.', tg_argv[2]
      using errcode = 'AC018', hint = 'DELETE its rows, or capture it with truncate => ''event''.';
  end if;
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  v_awaited := nullif(current_setting('aftercommit.truncated_children', true), '')::oid[];
  if tg_relid = any (v_awaited) then
    perform set_config('aftercommit.truncated_children', array_remove(v_awaited, tg_relid)::text, true);
    return null;
  end if;
  perform set_config('aftercommit.truncated_children', array(
    with recursive children as (
      select inhrelid as id from pg_inherits where inhparent = tg_relid
      union
      select i.inhrelid from pg_inherits i join children c on c.id = i.inhparent)
    select c.id from children c join pg_trigger t on t.tgrelid = c.id and t.tgname = tg_name and t.tgenabled in ('O', 'A'))::text, true);

  select s.max_depth into v_max_depth from "aftercommit".settings s;
  select * into v_metadata, v_tenant from "aftercommit".capture_context(tg_argv[0], tg_argv[2], v_max_depth);
  insert into "aftercommit".events (id, type, tenant, payload, metadata, occurred_at)
  values ("aftercommit".new_id(), tg_argv[0] || '.truncated', v_tenant,
    jsonb_build_object('table', tg_table_schema || '.' || tg_table_name), v_metadata, clock_timestamp());
  return null;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_truncate" from public;
comment on function "aftercommit"."capture_truncate" is 'Trigger of a captured table: TRUNCATE is one event, or is denied. TRUNCATE of a parent fires the parent''s trigger first: it lists its children in a setting of the transaction, and each child strikes itself off instead of writing an event. Arguments: aggregate type, ''event'' or ''deny'', the captured table.';
-- grants: emit
-- A value as jsonb, JSON null for null. An escaped NUL in json, which jsonb cannot hold, stays escaped as text; null for a value that
-- jsonb cannot hold at all.
create or replace function "aftercommit".capture_value(p_value anyelement) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return coalesce(to_jsonb(p_value), 'null');
exception when data_exception or program_limit_exceeded then
  begin
    return regexp_replace(to_json(p_value)::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g')::jsonb;
  exception when data_exception or program_limit_exceeded then
    return null;
  end;
end
$aftercommit$;
revoke all on function "aftercommit"."capture_value" from public;
comment on function "aftercommit"."capture_value" is 'A value as jsonb, JSON null for null. An escaped NUL in json, which jsonb cannot hold, stays escaped as text; null for a value that jsonb cannot hold at all.';
-- grants: emit
-- How far the import of a table has come, its row made and locked: of two that run at once, one waits for the batch of the other.
create or replace function "aftercommit".import_state(p_source text, out o_after text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  insert into "aftercommit".imports (source) values (p_source) on conflict do nothing;
  select i.after_key into o_after from "aftercommit".imports i where i.source = p_source for update;
end
$aftercommit$;
revoke all on function "aftercommit"."import_state" from public;
comment on function "aftercommit"."import_state" is 'How far the import of a table has come, its row made and locked: of two that run at once, one waits for the batch of the other.';
-- grants: none
-- Whether a setting of the session says something about the events it appends. Inlined by the planner, and therefore without
-- settings of its own.
create or replace function "aftercommit".has_session() returns boolean
language sql stable as $aftercommit$
  select pg_catalog.concat(
    pg_catalog.current_setting('aftercommit.user_id', true), pg_catalog.current_setting('aftercommit.tenant', true),
    pg_catalog.current_setting('aftercommit.correlation_id', true), pg_catalog.current_setting('aftercommit.causation_id', true),
    pg_catalog.current_setting('aftercommit.traceparent', true), pg_catalog.current_setting('aftercommit.actor_type', true),
    pg_catalog.current_setting('aftercommit.acting_for', true), pg_catalog.current_setting('aftercommit.depth', true))
    operator(pg_catalog.<>) ''
$aftercommit$;
revoke all on function "aftercommit"."has_session" from public;
comment on function "aftercommit"."has_session" is 'Whether a setting of the session says something about the events it appends. Inlined by the planner, and therefore without settings of its own.';
-- grants: none
-- Metadata of an event, completed from the settings of the session: what the emitter gave wins. A correlation id that is the
-- event's own id was not given, it only begins a chain. Raises AC006 where the chain of causes is too long.
create or replace function "aftercommit".session_metadata(p_id text, p_metadata jsonb) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_depth integer := nullif(substring(current_setting('aftercommit.depth', true) from '^\d{1,9}$')::integer, 0);
  v_session jsonb := jsonb_strip_nulls(jsonb_build_object(
    'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
    'correlation_id', nullif(current_setting('aftercommit.correlation_id', true), ''),
    'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
    'traceparent', nullif(current_setting('aftercommit.traceparent', true), ''),
    'actor_type', nullif(current_setting('aftercommit.actor_type', true), ''),
    'acting_for', nullif(current_setting('aftercommit.acting_for', true), ''),
    'depth', v_depth));
begin
  if v_depth > (select s.max_depth from "aftercommit".settings s) then
    raise exception 'This would be event number % in a chain of causes, more than the limit; nothing was emitted.', v_depth
      using errcode = 'AC006', hint = 'An event probably causes itself.';
  end if;
  return v_session || case when v_session ? 'correlation_id' and p_metadata ->> 'correlation_id' = p_id
    then p_metadata - 'correlation_id' else p_metadata end;
end
$aftercommit$;
revoke all on function "aftercommit"."session_metadata" from public;
comment on function "aftercommit"."session_metadata" is 'Metadata of an event, completed from the settings of the session: what the emitter gave wins. A correlation id that is the event''s own id was not given, it only begins a chain. Raises AC006 where the chain of causes is too long.';
-- grants: none
-- Whether an event has to be looked at by check_event before it is written: false for most, by the sizes in the headers of
-- their parts. A compressed part says nothing about its size, and 64 levels of JSON take more than 500 bytes. Inlined by the
-- planner, and therefore without settings of its own.
create or replace function "aftercommit".may_break_limits(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb, p_extra jsonb)
returns boolean
language sql stable as $aftercommit$
  select pg_catalog.pg_column_size(p_payload) > 500 and (pg_catalog.pg_column_size(p_payload) > 16000
      or pg_catalog.jsonb_path_exists(p_payload, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")'))
    or pg_catalog.pg_column_size(p_metadata) > 500
    or pg_catalog.pg_column_size(p_extra) > 255
    or pg_catalog.starts_with(p_type, 'aftercommit.')
    or pg_catalog.octet_length(p_aggregate_type) > 255 or pg_catalog.octet_length(p_aggregate_id) > 255
    or p_aggregate_type operator(pg_catalog.=) '' or p_aggregate_id operator(pg_catalog.=) ''
    or pg_catalog.pg_column_compression(p_payload) is not null
    or pg_catalog.pg_column_compression(p_metadata) is not null
    or pg_catalog.pg_column_compression(p_extra) is not null
$aftercommit$;
revoke all on function "aftercommit"."may_break_limits" from public;
comment on function "aftercommit"."may_break_limits" is 'Whether an event has to be looked at by check_event before it is written: false for most, by the sizes in the headers of their parts. A compressed part says nothing about its size, and 64 levels of JSON take more than 500 bytes. Inlined by the planner, and therefore without settings of its own.';
-- grants: none
-- Refuses an event of a type that only the library has, and one that breaks a limit of the log: the size and nesting of each part, the size of all of them, the length of
-- tenant and aggregate. True otherwise, so that it can stand in a condition. Small events need no check: see may_break_limits.
-- A part costs no more than its limit: size by its header, nesting down to the limit, then the digits that numbers with an
-- exponent have as text (1e131000 is stored in ten bytes), and only then its text.
create or replace function "aftercommit".check_event(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb, p_extra jsonb)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  -- Readers pass a larger event as a dead letter (LARGEST_EVENT in src/log/event-row.ts).
  c_largest constant bigint := 16777216;
  v_limits record;
  v_part record;
  v_number numeric;
  v_bytes bigint;
  v_total bigint := 0;
begin
  if starts_with(p_type, 'aftercommit.') then
    raise exception 'Event types that begin with aftercommit. are those of the library itself; nothing was emitted.'
      using errcode = 'AC003', hint = 'To let caches go of keys, call invalidate(keys).';
  end if;
  select max_payload, max_nesting into v_limits from "aftercommit".settings;
  if p_aggregate_type = '' or p_aggregate_id = '' or length(p_aggregate_type) > 255 or length(p_aggregate_id) > 255 then
    raise exception 'An aggregate has a type and an id of 1 to 255 characters, or neither; nothing was emitted.'
      using errcode = 'AC004';
  end if;
  if length(p_extra ->> 'tenant') > 255 then
    raise exception 'A tenant has 1 to 255 characters; nothing was emitted.' using errcode = 'AC004';
  end if;
  for v_part in
    select * from (values
      ('payload', p_payload, v_limits.max_nesting),
      ('metadata', p_metadata, v_limits.max_nesting),
      -- Values stand two levels deeper here: field → {old, new}.
      ('changes', p_extra -> 'changes', v_limits.max_nesting + 2),
      ('previous', p_extra -> 'previous', v_limits.max_nesting + 2)) as parts (name, content, levels)
     where content is not null
  loop
    -- No JSON takes eight times as much room as its text.
    if pg_column_size(v_part.content) / 8 > v_limits.max_payload then
      raise exception 'The % of % has more than % bytes of JSON text; nothing was emitted.',
        v_part.name, left(p_type, 80), v_limits.max_payload
        using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it, or raise log.max_payload and run aftercommit migrate.';
    end if;
    if jsonb_path_exists(v_part.content,
        format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', v_part.levels)::jsonpath) then
      raise exception 'The % of % nests deeper than % levels; nothing was emitted.', v_part.name, left(p_type, 80), v_part.levels
        using errcode = 'AC016', hint = 'Flatten it, or raise log.max_nesting and run aftercommit migrate.';
    end if;
    v_bytes := 0;
    if (pg_column_size(v_part.content) > 16000 or pg_column_compression(v_part.content) is not null)
       and jsonb_path_exists(v_part.content, 'strict $.** ? (!(@ >= 1e-300 && @ <= 1e300))') then
      for v_number in
        select digits::numeric
          from jsonb_path_query(v_part.content, 'strict $.** ? (@ > 1e300 || @ < -1e300 || @ < 1e-300 && @ > -1e-300)') digits
      loop
        v_bytes := v_bytes + case when abs(v_number) > 1 then length(trunc(v_number)::text) else scale(v_number) end;
        exit when v_bytes > v_limits.max_payload;
      end loop;
    end if;
    if v_bytes <= v_limits.max_payload then v_bytes := octet_length(v_part.content::text); end if;
    if v_bytes > v_limits.max_payload then
      raise exception 'The % of % has more than % bytes of JSON text; nothing was emitted.',
        v_part.name, left(p_type, 80), v_limits.max_payload
        using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it, or raise log.max_payload and run aftercommit migrate.';
    end if;
    v_total := v_total + v_bytes;
  end loop;
  if v_total > c_largest then
    raise exception 'The event % has % bytes of JSON text, and readers load events of at most %; nothing was emitted.',
      left(p_type, 80), v_total, c_largest
      using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it.';
  end if;
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."check_event" from public;
comment on function "aftercommit"."check_event" is 'Refuses an event of a type that only the library has, and one that breaks a limit of the log: the size and nesting of each part, the size of all of them, the length of tenant and aggregate. True otherwise, so that it can stand in a condition. Small events need no check: see may_break_limits. A part costs no more than its limit: size by its header, nesting down to the limit, then the digits that numbers with an exponent have as text (1e131000 is stored in ten bytes), and only then its text.';
-- grants: none
-- Whether a payload that was taken for small is large as text: numbers with an exponent are stored in a few bytes. Other
-- content of 16,000 bytes has no more than 100,000 characters. Inlined by the planner, like may_break_limits.
create or replace function "aftercommit".has_swollen(p_bytes integer, p_payload jsonb) returns boolean
language sql stable as $aftercommit$
  select p_bytes operator(pg_catalog.>) 100000 and pg_catalog.pg_column_size(p_payload) operator(pg_catalog.<=) 16000
$aftercommit$;
revoke all on function "aftercommit"."has_swollen" from public;
comment on function "aftercommit"."has_swollen" is 'Whether a payload that was taken for small is large as text: numbers with an exponent are stored in a few bytes. Other content of 16,000 bytes has no more than 100,000 characters. Inlined by the planner, like may_break_limits.';
-- grants: none
-- The hash of what an event says, by which a repetition under its id is told from another event. Times and metadata do not
-- count: a sender that builds its event again stamps it anew. Inlined by the planner, and so without settings of its own.
create or replace function "aftercommit".content_of(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_tenant text, p_payload jsonb, p_changes jsonb)
returns bytea
language sql stable as $aftercommit$
  select pg_catalog.substring(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.jsonb_build_array(
    p_type, p_aggregate_type, p_aggregate_id, p_tenant, p_payload, p_changes)::pg_catalog.text, 'UTF8')), 1, 16)
$aftercommit$;
revoke all on function "aftercommit"."content_of" from public;
comment on function "aftercommit"."content_of" is 'The hash of what an event says, by which a repetition under its id is told from another event. Times and metadata do not count: a sender that builds its event again stamps it anew. Inlined by the planner, and so without settings of its own.';
-- grants: none
-- Where the event with a chosen id stands, as append answers; null where none has it. Raises when the id stands for another
-- event: without that, the event of one service would vanish because another has taken its id. Ids from before content was
-- kept have none to compare.
create or replace function "aftercommit".place_of_id(p_id text, p_content bytea) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_known record;
begin
  select position, version, content into v_known from "aftercommit".event_ids where id = p_id;
  if not found then return null; end if;
  if v_known.content <> p_content then
    raise exception 'The id "%" stands for another event, at position %; nothing was emitted.', p_id, v_known.position
      using errcode = 'AC017', detail = p_id, hint = 'Give each event an id of its own; repeat an event with the content it had.';
  end if;
  return concat_ws(':', v_known.position, v_known.version);
end
$aftercommit$;
revoke all on function "aftercommit"."place_of_id" from public;
comment on function "aftercommit"."place_of_id" is 'Where the event with a chosen id stands, as append answers; null where none has it. Raises when the id stands for another event: without that, the event of one service would vanish because another has taken its id. Ids from before content was kept have none to compare.';
-- grants: none
-- Takes the next version of a stream. The row lock comes before nextval, so that inside a stream the order of versions
-- is the order of positions.
create or replace function "aftercommit".next_version(p_aggregate_type text, p_aggregate_id text, p_adopted boolean) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_version bigint;
  v_before bigint := 0;
begin
  update "aftercommit".streams set version = version + 1
   where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id
  returning version into v_version;
  if not found then
    if p_adopted then
      select count(*) into v_before from "aftercommit".events
       where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
    end if;
    insert into "aftercommit".streams as s (aggregate_type, aggregate_id, version)
    values (p_aggregate_type, p_aggregate_id, v_before + 1)
    on conflict (aggregate_type, aggregate_id) do update set version = s.version + 1
    returning version into v_version;
  end if;
  return v_version;
end
$aftercommit$;
revoke all on function "aftercommit"."next_version" from public;
comment on function "aftercommit"."next_version" is 'Takes the next version of a stream. The row lock comes before nextval, so that inside a stream the order of versions is the order of positions.';
-- grants: emit
-- Appends one event and returns 'position' or 'position:version'. A plain event is one insert; streams and chosen ids
-- take their row first. Values that are seldom given come in p_extra: tenant, changes, previous, chosen (the caller chose the
-- id), expected (the version the stream must be at). A scalar result and few parameters: measured 10 % per append.
-- p_level is the last breaking migration that the process knows; SQL has none. The least one allowed is written into the
-- function, so that the check reads no table.
create or replace function "aftercommit".append(
  p_id text, p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb,
  p_occurred_at timestamptz default null, p_extra jsonb default null, p_level integer default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $aftercommit$
declare
  v_adopted boolean;
  v_version bigint;
  v_position bigint;
  v_bytes integer;
  v_known text;
  v_content bytea;
begin
  if p_level < 14 then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if "aftercommit".has_session() then
    p_metadata := "aftercommit".session_metadata(p_id, p_metadata);
    if nullif(current_setting('aftercommit.tenant', true), '') is not null and not coalesce(p_extra ? 'tenant', false) then
      p_extra := coalesce(p_extra, '{}') || jsonb_build_object('tenant', current_setting('aftercommit.tenant'));
    end if;
  end if;
  if "aftercommit".may_break_limits(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra) then
    perform "aftercommit".check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
  end if;
  -- Nearly every event ends here. Whether its type is a stream is asked by the insert itself: each statement more is felt.
  if p_extra is null then
    insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
    select p_id, p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, coalesce(p_occurred_at, clock_timestamp())
     where not exists (select from "aftercommit".stream_types where aggregate_type = p_aggregate_type)
    returning position, bytes into v_position, v_bytes;
    if found then
      if "aftercommit".has_swollen(v_bytes, p_payload) then
        perform "aftercommit".check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
      end if;
      return v_position;
    end if;
  end if;
  if p_extra ? 'chosen' then
    v_content := "aftercommit".content_of(p_type, p_aggregate_type, p_aggregate_id, p_extra ->> 'tenant', p_payload, p_extra -> 'changes');
    v_known := "aftercommit".place_of_id(p_id, v_content);
    if v_known is not null then return v_known; end if;
  end if;

  if p_aggregate_type is not null then
    select adopted into v_adopted from "aftercommit".stream_types where aggregate_type = p_aggregate_type;
    if found then
      v_version := "aftercommit".next_version(p_aggregate_type, p_aggregate_id, v_adopted);
      if v_version - 1 <> (p_extra ->> 'expected')::bigint then
        -- The transaction that had the row of the stream before may have appended this very id: then it is no conflict.
        if p_extra ? 'chosen' then
          v_known := "aftercommit".place_of_id(p_id, v_content);
          if v_known is not null then
            update "aftercommit".streams set version = version - 1
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
    insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, version, payload, metadata, occurred_at)
    values (p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_payload, p_metadata, coalesce(p_occurred_at, clock_timestamp()))
    returning position, bytes into v_position, v_bytes;
    if "aftercommit".has_swollen(v_bytes, p_payload) then
      perform "aftercommit".check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
    end if;
    return concat_ws(':', v_position, v_version);
  end if;

  if v_version is null and p_extra ? 'expected' then
    raise exception 'Aggregate type % is not declared as a stream.', coalesce(p_aggregate_type, '(none)')
      using errcode = 'AC002';
  end if;
  -- Readers wait for transactions that hold the locks of events and of the sequence: this one comes first (decision 0001).
  lock table only "aftercommit".events in row exclusive mode;
  v_position := nextval('"aftercommit".positions');
  if p_extra ? 'chosen' then
    insert into "aftercommit".event_ids (id, position, version, content) values (p_id, v_position, v_version, v_content)
    on conflict (id) do nothing;
    if not found then
      -- Somebody else's append of the same id committed while this one waited for it: theirs is the event. The version
      -- taken above is given back, and the number becomes a hole.
      if v_version is not null then
        update "aftercommit".streams set version = version - 1
         where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
      end if;
      return "aftercommit".place_of_id(p_id, v_content);
    end if;
  end if;
  insert into "aftercommit".events (position, id, type, aggregate_type, aggregate_id, version, tenant, payload, changes, previous, metadata, occurred_at)
  values (v_position, p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_extra ->> 'tenant', p_payload,
    p_extra -> 'changes', p_extra -> 'previous', p_metadata, coalesce(p_occurred_at, clock_timestamp()))
  returning bytes into v_bytes;
  if "aftercommit".has_swollen(v_bytes, p_payload) then
    perform "aftercommit".check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
  end if;
  return concat_ws(':', v_position, v_version);
end
$aftercommit$;
revoke all on function "aftercommit"."append" from public;
comment on function "aftercommit"."append" is 'Appends one event and returns ''position'' or ''position:version''. A plain event is one insert; streams and chosen ids take their row first. Values that are seldom given come in p_extra: tenant, changes, previous, chosen (the caller chose the id), expected (the version the stream must be at). A scalar result and few parameters: measured 10 % per append. p_level is the last breaking migration that the process knows; SQL has none. The least one allowed is written into the function, so that the check reads no table.';
-- grants: emit
-- Appends many in one statement, in the order given, all or nothing. Without chosen ids it is one insert, and one update of
-- the rows of its streams: every version of such a row stays until the transaction ends, and the next update walks past it.
-- An array that is null counts as an array of nulls. Payloads come as one JSON array: measured, that spares a fifth of a
-- batch, since nothing is escaped on the way. p_level as in append.
create or replace function "aftercommit".append_many(
  p_ids text[], p_types text[], p_aggregate_types text[], p_aggregate_ids text[], p_payloads jsonb, p_metadata jsonb,
  p_occurred_at timestamptz[] default null, p_extras jsonb[] default null, p_level integer default null)
returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off as $aftercommit$
declare
  v_conflict record;
begin
  if p_level < 14 then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if "aftercommit".has_session() then
    p_metadata := (
      select jsonb_agg("aftercommit".session_metadata(e.id, e.metadata) order by e.place)
        from rows from (unnest(p_ids), jsonb_array_elements(p_metadata)) with ordinality as e (id, metadata, place));
    if nullif(current_setting('aftercommit.tenant', true), '') is not null then
      p_extras := array(
        select case when e.extra ? 'tenant' then e.extra
                 else coalesce(e.extra, '{}') || jsonb_build_object('tenant', current_setting('aftercommit.tenant')) end
          from rows from (unnest(p_ids), unnest(p_extras)) with ordinality as e (id, extra, place)
         order by e.place);
    end if;
  end if;
  if (p_extras is null or not exists (select from unnest(p_extras) x where x ?| array['chosen', 'expected']))
     and not exists (select from "aftercommit".stream_types where aggregate_type = any (p_aggregate_types)) then
    return query
      insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
      select e.id, e.type, e.aggregate_type, e.aggregate_id, e.extra ->> 'tenant', e.payload,
             e.extra -> 'changes', e.extra -> 'previous', e.metadata, coalesce(e.occurred_at, clock_timestamp())
        from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
          as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra)
       where case when "aftercommit".may_break_limits(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra)
                 then "aftercommit".check_event(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra) else true end
      returning case when "aftercommit".has_swollen(bytes, payload)
                       and not "aftercommit".check_event(type, aggregate_type, aggregate_id, payload, metadata, null)
                  then null else position::text end;
    return;
  end if;

  -- Rows of streams are made and locked in one order whatever the order of the events: two batches cannot deadlock.
  insert into "aftercommit".streams (aggregate_type, aggregate_id, version)
  select w.t, w.i,
         case when d.adopted
           then (select count(*) from "aftercommit".events e where e.aggregate_type = w.t and e.aggregate_id = w.i) else 0 end
    from (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
    join "aftercommit".stream_types d on d.aggregate_type = w.t
   order by w.t, w.i
  on conflict do nothing;
  perform from (
    select from "aftercommit".streams s
      join (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
        on s.aggregate_type = w.t and s.aggregate_id = w.i
     order by s.aggregate_type, s.aggregate_id
       for update of s) locked;
  if p_extras is null or not exists (select from unnest(p_extras) x where x ? 'chosen') then
    if exists (select from unnest(p_extras) x where x ? 'expected') then
      select e.t, e.i, s.version + e.before as found, e.expected, s.version is null as is_plain into v_conflict
        from (select a.t, a.i, a.n, (a.x ->> 'expected')::bigint as expected, row_number() over (partition by a.t, a.i order by a.n) - 1 as before
                from rows from (unnest(p_aggregate_types), unnest(p_aggregate_ids), unnest(p_extras)) with ordinality as a (t, i, x, n)) e
        left join ("aftercommit".streams s join "aftercommit".stream_types d using (aggregate_type))
          on s.aggregate_type = e.t and s.aggregate_id = e.i
       where e.expected is not null and s.version + e.before is distinct from e.expected
       order by e.n
       limit 1;
      if found and v_conflict.is_plain then
        raise exception 'Aggregate type % is not declared as a stream.', coalesce(v_conflict.t, '(none)') using errcode = 'AC002';
      elsif found then
        raise exception 'Stream %/% is at version %, not %.', v_conflict.t, v_conflict.i, v_conflict.found, v_conflict.expected
          using errcode = 'AC001', detail = v_conflict.found::text;
      end if;
    end if;
    return query
      with counted as (
        select a.t, a.i, count(*) as events
          from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)
          join "aftercommit".stream_types d on d.aggregate_type = a.t
         group by a.t, a.i),
      raised as (
        update "aftercommit".streams s set version = s.version + c.events
          from counted c
         where s.aggregate_type = c.t and s.aggregate_id = c.i
        returning s.aggregate_type, s.aggregate_id, s.version - c.events as before),
      appended as (
        insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, version, tenant, payload, changes, previous, metadata, occurred_at)
        select o.id, o.type, o.aggregate_type, o.aggregate_id, o.version, o.extra ->> 'tenant', o.payload,
               o.extra -> 'changes', o.extra -> 'previous', o.metadata, coalesce(o.occurred_at, clock_timestamp())
          from (select e.*, r.before + row_number() over (partition by e.aggregate_type, e.aggregate_id order by e.n) as version
                  from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
                    jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
                    with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
                  left join raised r on r.aggregate_type = e.aggregate_type and r.aggregate_id = e.aggregate_id
                 where case when "aftercommit".may_break_limits(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra)
                   then "aftercommit".check_event(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra) else true end
                 order by e.n) o
        returning version, case when "aftercommit".has_swollen(bytes, payload)
                                  and not "aftercommit".check_event(type, aggregate_type, aggregate_id, payload, metadata, null)
                             then null else position end as position)
      select concat_ws(':', position, version) from appended order by position;
    return;
  end if;
  return query
    select "aftercommit".append(e.id, e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.occurred_at, e.extra)
      from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
        with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
     order by e.n;
end
$aftercommit$;
revoke all on function "aftercommit"."append_many" from public;
comment on function "aftercommit"."append_many" is 'Appends many in one statement, in the order given, all or nothing. Without chosen ids it is one insert, and one update of the rows of its streams: every version of such a row stays until the transaction ends, and the next update walks past it. An array that is null counts as an array of nulls. Payloads come as one JSON array: measured, that spares a fifth of a batch, since nothing is escaped on the way. p_level as in append.';
-- grants: emit
-- Appends the next rows of a table of events, in the order of its columns p_order, and answers how many; 0 at the end. Runs as its
-- caller, who reads the table and appends. p_columns says which column holds what: {"type": "event_type", "payload": "data"}, and
-- aggregate_type, aggregate_id, tenant, changes, previous, metadata, occurred_at where the table has them. The id of an event is
-- import:<table>:<key>, so a row that is read again appends nothing.
create or replace function "aftercommit".import_batch(p_relation oid, p_order text[], p_columns jsonb, p_rows integer default 1000) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set plan_cache_mode = force_custom_plan as $aftercommit$
declare
  v_source text := p_relation::regclass::text;
  v_keys text[] := "aftercommit".capture_key_columns(p_relation);
  v_problem text;
  v_has_null boolean;
  v_after text[];
  v_columns text;
  v_texts text;
  v_bound text;
  v_batch record;
begin
  v_problem := case
    when coalesce(v_keys, '{}') = '{}' then 'it has no primary key, so its events would have no ids'
    when not p_order @> v_keys then format('the order must end with its key (%s), or rows could be passed over', array_to_string(v_keys, ', '))
    when not p_columns ?& '{type,payload}' then 'the columns of type and payload must be named'
    else (
      select format('it has no column %s', string_agg(quote_ident(c.name), ', '))
        from (select unnest(p_order) union select value from jsonb_each_text(p_columns)) c (name)
       where not exists (select from pg_attribute a where a.attrelid = p_relation and a.attname = c.name and a.attnum > 0 and not a.attisdropped)
      having count(*) > 0)
  end;
  if v_problem is not null then
    raise exception '% is not imported: %.', v_source, v_problem using errcode = 'AC017';
  end if;
  v_after := "aftercommit".import_state(v_source);
  select string_agg(format('t.%I', o.name), ', ' order by o.place), string_agg(format('t.%I::text', o.name), ', ' order by o.place),
         string_agg(format('%L::%s', v_after[o.place], format_type(a.atttypid, a.atttypmod)), ', ' order by o.place)
    into v_columns, v_texts, v_bound
    from unnest(p_order) with ordinality o (name, place)
    join pg_attribute a on a.attrelid = p_relation and a.attname = o.name;
  if v_after is null then
    -- A row without a place in the order would never be reached.
    execute format('select true from %s t where %s limit 1', v_source,
      (select string_agg(format('t.%I is null', o.name), ' or ') from unnest(p_order) o (name))) into v_has_null;
    if v_has_null then
      raise exception '% is not imported: a column of its order is null in some row.', v_source using errcode = 'AC017';
    end if;
  end if;
  execute format(
    'select array_agg(r.image order by r.place) as images, (array_agg(to_jsonb(r.key) order by r.place desc))[1] as last
       from (select row_number() over () as place, b.* from (
         select to_jsonb(t.*) as image, array[%s] as key from %s t %s order by %s limit %s) b) r',
    v_texts, v_source, case when v_after is not null then format('where (%s) > (%s)', v_columns, v_bound) else '' end, v_columns, p_rows)
    into v_batch;
  if v_batch.images is null then
    perform "aftercommit".advance_import(v_source, null, 0);
    return 0;
  end if;
  select i.image ->> (p_columns ->> 'type') into v_problem
    from unnest(v_batch.images) i (image)
   where (i.image ->> (p_columns ->> 'type')) is null
      or (i.image ->> (p_columns ->> 'type')) !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' limit 1;
  if found then
    raise exception '% is not imported further: % is no type like order.placed.', v_source, quote_nullable(left(v_problem, 80))
      using errcode = 'AC017', hint = 'Import a view-like copy with types of that form, or a generated column.';
  end if;
  perform "aftercommit".append_many(
    array_agg(e.id order by e.place), array_agg(e.image ->> (p_columns ->> 'type') order by e.place),
    array_agg(e.aggregate_type order by e.place), array_agg(e.aggregate_id order by e.place),
    jsonb_agg(e.image -> (p_columns ->> 'payload') order by e.place),
    jsonb_agg(jsonb_build_object('correlation_id', e.id)
      || case when jsonb_typeof(e.image -> (p_columns ->> 'metadata')) = 'object' then e.image -> (p_columns ->> 'metadata') else '{}' end
      || jsonb_build_object('imported_from', v_source) order by e.place),
    array_agg((e.image ->> (p_columns ->> 'occurred_at'))::timestamptz order by e.place),
    array_agg(jsonb_strip_nulls(jsonb_build_object('chosen', true, 'tenant', e.image ->> (p_columns ->> 'tenant')))
      || case when jsonb_typeof(e.image -> (p_columns ->> 'changes')) = 'object'
           then jsonb_build_object('changes', e.image -> (p_columns ->> 'changes')) else '{}' end
      || case when jsonb_typeof(e.image -> (p_columns ->> 'previous')) = 'object'
           then jsonb_build_object('previous', e.image -> (p_columns ->> 'previous')) else '{}' end order by e.place))
    from (
      select i.place, i.image, "aftercommit".capture_short('import:' || v_source || ':' || "aftercommit".capture_key(i.image, v_keys)) as id,
             case when i.image ->> (p_columns ->> 'aggregate_id') is not null then i.image ->> (p_columns ->> 'aggregate_type') end as aggregate_type,
             case when i.image ->> (p_columns ->> 'aggregate_type') is not null then i.image ->> (p_columns ->> 'aggregate_id') end as aggregate_id
        from unnest(v_batch.images) with ordinality i (image, place)) e;
  perform "aftercommit".advance_import(v_source, array(select jsonb_array_elements_text(v_batch.last)), cardinality(v_batch.images));
  return cardinality(v_batch.images);
end
$aftercommit$;
revoke all on function "aftercommit"."import_batch" from public;
comment on function "aftercommit"."import_batch" is 'Appends the next rows of a table of events, in the order of its columns p_order, and answers how many; 0 at the end. Runs as its caller, who reads the table and appends. p_columns says which column holds what: {"type": "event_type", "payload": "data"}, and aggregate_type, aggregate_id, tenant, changes, previous, metadata, occurred_at where the table has them. The id of an event is import:<table>:<key>, so a row that is read again appends nothing.';
-- grants: run
-- Splits the open-ended last partition while it is empty: the faster the log grows, the more room is made ahead. An append
-- never waits for more than the short lock_timeout, and never fails for want of a partition: until the split succeeds, rows
-- go into the open one. Returns what was added.
create or replace function "aftercommit".split_partitions() returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $aftercommit$
declare
  v_size bigint := (select partition_size from "aftercommit".settings);
  v_open_from bigint;
  v_from bigint;
  v_head bigint := (select last_value from "aftercommit".positions);
  -- Room for three times what came in the last minutes: a bulk load must not reach the open partition before the next upkeep.
  v_ahead bigint := (
    select least(greatest(v_size, 3 * (v_head - min(frontier))), 20 * v_size)
      from "aftercommit".frontier_marks
     where at > clock_timestamp() - interval '3 minutes');
  v_name text;
  v_added text[] := '{}';
begin
  -- Looked at twice: another process may have split it while this one waited for the lock.
  for v_look in 1 .. 2 loop
    select coalesce(substring(pg_get_expr(c.relpartbound, c.oid) from 'FROM \(''?(\d+)')::bigint, 0) into v_open_from
      from pg_class c
     where c.oid = to_regclass(format('%I.events_open', 'aftercommit'));
    -- At least two partitions of room ahead of the head: the split happens long before the open one is written to.
    if v_head + v_ahead < v_open_from then return v_added; end if;
    if v_look = 1 then
      lock table "aftercommit".events in access exclusive mode;
    end if;
  end loop;

  if v_open_from is not null then
    if exists (select from "aftercommit".events_open) then
      raise exception 'The open partition holds events, so it cannot be split.' using errcode = 'AC009';
    end if;
    alter table "aftercommit".events detach partition "aftercommit".events_open;
    drop table "aftercommit".events_open;
  else
    v_open_from := 0;
  end if;

  v_from := v_open_from;
  loop
    v_name := format('events_%s', lpad(v_from::text, greatest(12, length(v_from::text)), '0'));
    execute format('create table %1$I.%2$I partition of %1$I.events for values from (%3$s) to (%4$s)',
      'aftercommit', v_name, v_from, v_from + v_size);
    -- Numbers are taken through the parent alone: its lock is a part of what readers wait for (decision 0001).
    execute format('alter table only %I.%I alter column position drop default', 'aftercommit', v_name);
    v_added := v_added || v_name;
    v_from := v_from + v_size;
    exit when v_head + v_ahead < v_from;
  end loop;
  execute format('create table %1$I.events_open partition of %1$I.events for values from (%2$s) to (maxvalue)',
    'aftercommit', v_from);
  alter table only "aftercommit".events_open alter column position drop default;
  return v_added;
end
$aftercommit$;
revoke all on function "aftercommit"."split_partitions" from public;
comment on function "aftercommit"."split_partitions" is 'Splits the open-ended last partition while it is empty: the faster the log grows, the more room is made ahead. An append never waits for more than the short lock_timeout, and never fails for want of a partition: until the split succeeds, rows go into the open one. Returns what was added.';
-- grants: emit
-- Keeps empty partitions ahead of the head while many events are written; false where that has to wait for other sessions.
create or replace function "aftercommit".make_room() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  perform "aftercommit".split_partitions();
  return true;
exception when lock_not_available or sqlstate 'AC009' then
  return false;
end
$aftercommit$;
revoke all on function "aftercommit"."make_room" from public;
comment on function "aftercommit"."make_room" is 'Keeps empty partitions ahead of the head while many events are written; false where that has to wait for other sessions.';
-- grants: emit
-- Forgets a captured table, for uncapture(), which runs as its caller. Refuses a caller who could not have captured it.
create or replace function "aftercommit".unregister_capture(p_type text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_relation oid;
begin
  select c.oid into v_relation from "aftercommit".captured_tables t join pg_class c on c.oid = t.relation where t.aggregate_type = p_type;
  if found and not has_table_privilege(session_user, v_relation, 'trigger') then
    raise exception 'Role % may not make triggers on %, so the table stays captured.', session_user, v_relation::regclass
      using errcode = 'AC017', hint = 'Let the owner of the table do it.';
  end if;
  delete from "aftercommit".captured_tables t where t.aggregate_type = p_type;
end
$aftercommit$;
revoke all on function "aftercommit"."unregister_capture" from public;
comment on function "aftercommit"."unregister_capture" is 'Forgets a captured table, for uncapture(), which runs as its caller. Refuses a caller who could not have captured it.';
-- grants: emit
-- Ends the capture of a table: drops its triggers, and forgets it. False where it was not captured. Events that exist stay. A
-- table that is gone is named by its aggregate type: uncapture(null, aggregate => 'order').
create or replace function "aftercommit".uncapture(relation regclass, aggregate text default null) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_type text := aggregate;
  r record;
begin
  select c.aggregate_type into v_type from "aftercommit".captured() c
   where c.relation = uncapture.relation or c.aggregate_type = v_type;
  if not found then return false; end if;
  for r in
    select g.tgname as name, g.tgrelid::regclass as relation
      from "aftercommit".captured() c
     cross join "aftercommit".capture_tree(c.relation) t (id)
      join pg_trigger g on g.tgrelid = t.id
      join pg_proc f on f.oid = g.tgfoid
      join pg_namespace n on n.oid = f.pronamespace
     where c.aggregate_type = v_type and not g.tgisinternal and g.tgparentid = 0
       and n.nspname = 'aftercommit' and f.proname in ('capture_rows', 'capture_row', 'capture_truncate')
  loop
    execute format('drop trigger %I on %s', r.name, r.relation);
  end loop;
  perform "aftercommit".unregister_capture(v_type);
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."uncapture" from public;
comment on function "aftercommit"."uncapture" is 'Ends the capture of a table: drops its triggers, and forgets it. False where it was not captured. Events that exist stay. A table that is gone is named by its aggregate type: uncapture(null, aggregate => ''order'').';
-- grants: run
-- Adds work in the caller's transaction; what is unique and there already is left alone. Returns what was added.
-- `lane` is the number of a lane or, where `p_lanes` is given, the place of that number in it, from 1.
-- Holding the lock that an append holds makes arming readers wait for this transaction too, so no wake-up is lost.
create or replace function "aftercommit".add_deliveries(p_rows jsonb, p_lanes integer[] default null) returns table (segment smallint, id bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_column
begin
  perform pg_sequence_last_value('"aftercommit".positions'::regclass);
  return query
  insert into "aftercommit".deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, run_at, attempts,
                                  first_attempt_at, last_attempt_at, error, event_id)
  select case when r.unique_key is not null or r.run_at is not null or r.delay_ms > 2000 or r.attempts > 0 then 0 else s.segment end,
         nextval('"aftercommit".delivery_ids'::regclass), case when p_lanes is null then r.lane else p_lanes[r.lane] end,
         r.owner, r.key, coalesce(r.ordered and r.key is not null, false), r.unique_key, r.payload,
         coalesce(r.run_at, clock_timestamp() + make_interval(secs => coalesce(r.delay_ms, 0) / 1000.0)), coalesce(r.attempts, 0),
         case when r.attempts > 0 then clock_timestamp() - make_interval(secs => coalesce(r.since_first_ms, 0) / 1000.0) end,
         case when r.attempts > 0 then clock_timestamp() end, r.error, r.event_id
    from jsonb_to_recordset(p_rows) as r(lane integer, owner text, key text, ordered boolean, unique_key text, payload jsonb,
         run_at timestamptz, delay_ms double precision, attempts integer, since_first_ms double precision, error jsonb, event_id text),
         "aftercommit".delivery_state s
  on conflict do nothing
  returning segment, id;
end
$aftercommit$;
revoke all on function "aftercommit"."add_deliveries" from public;
comment on function "aftercommit"."add_deliveries" is 'Adds work in the caller''s transaction; what is unique and there already is left alone. Returns what was added. `lane` is the number of a lane or, where `p_lanes` is given, the place of that number in it, from 1. Holding the lock that an append holds makes arming readers wait for this transaction too, so no wake-up is lost.';
-- grants: run
-- Lanes that have rows, one probe each, never a scan of the rows themselves: so many after p_after, then from the
-- beginning. A caller that asks again with the last lane it got sees all of them in turn.
create or replace function "aftercommit".busy_lanes(p_after integer, p_most integer) returns setof integer
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with recursive later(lane, n) as (
    (select lane, 1 from "aftercommit".deliveries where lane > p_after order by lane limit 1)
    union all
    select (select d.lane from "aftercommit".deliveries d where d.lane > b.lane order by d.lane limit 1), b.n + 1
      from later b
     where b.lane is not null and b.n < p_most),
  earlier(lane, n) as (
    (select lane, 1 from "aftercommit".deliveries where lane <= p_after order by lane limit 1)
    union all
    select (select d.lane from "aftercommit".deliveries d where d.lane > b.lane and d.lane <= p_after order by d.lane limit 1), b.n + 1
      from earlier b
     where b.lane is not null and b.n < p_most)
  select found.lane
    from (select lane from later union all select lane from earlier) found
   where found.lane is not null
   limit p_most
$aftercommit$;
revoke all on function "aftercommit"."busy_lanes" from public;
comment on function "aftercommit"."busy_lanes" is 'Lanes that have rows, one probe each, never a scan of the rows themselves: so many after p_after, then from the beginning. A caller that asks again with the last lane it got sees all of them in turn.';
-- grants: run
-- How many of p_wanted calls a destination can take now. Granted calls are taken from its bucket and counted as running at
-- once; the row of the destination stays locked until the claim has ended, so limits hold for all processes together.
-- p_places: calls that the worker could begin at once. Calls that it merely held would be missing to other workers.
create or replace function "aftercommit".grant_deliveries(
  p_worker text, p_destination text, p_wanted integer, p_most integer, p_places integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  d record;
  v_granted integer := least(p_wanted, p_most);
  v_burst double precision;
  v_tokens double precision;
begin
  if p_destination = '' then return greatest(v_granted, 0); end if;
  select * into d from "aftercommit".destinations where destination = p_destination;
  if not found then return greatest(v_granted, 0); end if;
  if d.paused or d.resting_until > clock_timestamp() then return 0; end if;
  if d.concurrency is null and d.rate is null and d.opened_at is null then return greatest(v_granted, 0); end if;
  select * into d from "aftercommit".destinations where destination = p_destination for update skip locked;
  if not found or d.open_until > clock_timestamp() then return 0; end if;
  -- Half open: one probe, and no other until it had time to answer.
  if d.opened_at is not null then v_granted := 1; end if;
  if d.concurrency is not null then
    -- A limit that somebody set takes the place of the one that every process has for itself.
    select least(case when d.opened_at is null then p_wanted else 1 end, p_places,
                 d.concurrency - coalesce(sum((w.running ->> p_destination)::integer), 0)) into v_granted
      from "aftercommit".delivery_workers w
      join "aftercommit".live_leases l on l.lease = w.worker;
  end if;
  if d.rate is not null then
    -- A bucket that cannot hold one would never give one.
    v_burst := greatest(coalesce(d.burst, d.rate), 1);
    v_tokens := least(v_burst, coalesce(d.tokens, v_burst)
      + d.rate * greatest(extract(epoch from clock_timestamp() - d.refilled_at), 0));
    v_granted := least(v_granted, floor(v_tokens)::integer);
  end if;
  if v_granted <= 0 then return 0; end if;
  update "aftercommit".destinations
     set tokens = v_tokens - v_granted,
         refilled_at = clock_timestamp(),
         open_until = case when opened_at is null then open_until else clock_timestamp() + interval '30 seconds' end,
         probing = opened_at is not null
   where destination = p_destination;
  if d.concurrency is not null then
    update "aftercommit".delivery_workers
       set running = running || jsonb_build_object(p_destination, coalesce((running ->> p_destination)::integer, 0) + v_granted)
     where worker = p_worker;
  end if;
  return v_granted;
end
$aftercommit$;
revoke all on function "aftercommit"."grant_deliveries" from public;
comment on function "aftercommit"."grant_deliveries" is 'How many of p_wanted calls a destination can take now. Granted calls are taken from its bucket and counted as running at once; the row of the destination stays locked until the claim has ended, so limits hold for all processes together. p_places: calls that the worker could begin at once. Calls that it merely held would be missing to other workers.';
-- grants: run
-- Lanes that may have something due, found by probes and never by a scan of their rows: those of the rotating segments,
-- which hold little else, and those of the oldest rows that were put off and are due. Where that is not all, others may be
-- hidden behind lanes that are held back or of foreign names: then the registered ones that are not paused are looked at one
-- by one. With a null when there may be still more.
create or replace function "aftercommit".due_lanes(p_names jsonb, p_most integer) returns setof integer
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  -- From a little before the first to a little after the last, so that those at the ends are met as often as others.
  v_begin integer := floor(random() * (coalesce((select max(lane) from "aftercommit".delivery_lanes), 0) + 100))::integer - 50;
  v_rotating integer[];
  v_put_off integer[];
  v_known integer[] := '{}';
  v_more boolean;
begin
  v_rotating := array(
    with recursive later(lane, n) as (
      (select lane, 1 from "aftercommit".deliveries where segment in (1, 2, 3, 4) and lane > v_begin order by lane limit 1)
      union all
      select (select d.lane from "aftercommit".deliveries d where d.segment in (1, 2, 3, 4) and d.lane > b.lane order by d.lane limit 1), b.n + 1
        from later b
       where b.lane is not null and b.n < p_most),
    earlier(lane, n) as (
      (select lane, 1 from "aftercommit".deliveries where segment in (1, 2, 3, 4) and lane <= v_begin order by lane limit 1)
      union all
      select (select d.lane from "aftercommit".deliveries d
               where d.segment in (1, 2, 3, 4) and d.lane > b.lane and d.lane <= v_begin order by d.lane limit 1), b.n + 1
        from earlier b
       where b.lane is not null and b.n < p_most)
    select found.lane
      from (select lane from later union all select lane from earlier) found
     where found.lane is not null
     limit p_most);
  v_put_off := array(
    select d.lane from "aftercommit".deliveries d
     where d.segment = 0 and d.run_at <= v_now and d.token is null
     order by d.run_at
     limit 300);
  v_more := cardinality(v_rotating) = p_most;
  if v_more or cardinality(v_put_off) = 300 then
    v_known := array(
      select l.lane
        from (select n.kind, n.name
                from jsonb_to_recordset(p_names) as n(kind text, name text)
                left join "aftercommit".delivery_pauses p on p.kind = n.kind and p.name = n.name
               where p.kind is null
               -- In any order: one with many lanes must not be first every time.
               order by random()) n
       cross join lateral (
         (select l.lane
            from "aftercommit".delivery_lanes l
            left join "aftercommit".destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane > v_begin and t.destination is null
           order by l.lane
           limit 2000)
         union all
         (select l.lane
            from "aftercommit".delivery_lanes l
            left join "aftercommit".destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane <= v_begin and t.destination is null
           order by l.lane
           limit 2000)) l
       limit 2000);
    v_more := v_more or cardinality(v_known) = 2000;
    v_known := array(
      select u.lane
        from unnest(v_known) as u(lane)
       cross join lateral (
         select from "aftercommit".deliveries d
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
revoke all on function "aftercommit"."due_lanes" from public;
comment on function "aftercommit"."due_lanes" is 'Lanes that may have something due, found by probes and never by a scan of their rows: those of the rotating segments, which hold little else, and those of the oldest rows that were put off and are due. Where that is not all, others may be hidden behind lanes that are held back or of foreign names: then the registered ones that are not paused are looked at one by one. With a null when there may be still more.';
-- grants: run
-- Rows that may be done next in a lane with an order: the first row of each key that has one due here, unless it is in
-- another lane of the name or a dead letter stands before it, and every row without an order.
create or replace function "aftercommit".first_in_turn(p_lane integer, p_now timestamptz, p_most integer)
returns table (segment smallint, id bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $aftercommit$
#variable_conflict use_column
declare
  v_of record;
begin
  -- Where the walk below begins and ends: most names have one lane, and then it looks no further.
  select l.kind, l.name,
         (select min(s.lane) from "aftercommit".delivery_lanes s where s.kind = l.kind and s.name = l.name) as first_lane,
         (select max(s.lane) from "aftercommit".delivery_lanes s where s.kind = l.kind and s.name = l.name) as last_lane
    into v_of
    from "aftercommit".delivery_lanes l
   where l.lane = p_lane;
  return query
  select c.segment, c.id
    from (select h.segment, h.id, h.run_at
            from (select distinct w.key
                    -- Along the index by lane: what is looked at here must not be more than what is due in this one.
                    from (select d.key, d.ordered
                            from "aftercommit".deliveries d
                           where d.lane = p_lane and d.token is null and d.run_at <= p_now
                           order by d.run_at, d.id
                          offset 0) w
                   where w.ordered) k
           cross join lateral (
             -- The first of the key in each lane, from lane to lane: other names may have much of the same key.
             with recursive heads as (
               (select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                  from "aftercommit".deliveries e
                 where e.ordered and e.key = k.key and e.lane >= v_of.first_lane and e.lane <= v_of.last_lane
                 order by e.lane, e.id
                 limit 1)
               union all
               select n.segment, n.id, n.lane, n.owner, n.token, n.run_at
                 from heads b
                cross join lateral (
                  select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                    from "aftercommit".deliveries e
                   where e.ordered and e.key = k.key and e.lane > b.lane and e.lane <= v_of.last_lane
                   order by e.lane, e.id
                   limit 1) n
                where b.lane < v_of.last_lane)
             select f.segment, f.id, f.lane, f.owner, f.token, f.run_at
               from heads f
               join "aftercommit".delivery_lanes s on s.lane = f.lane
              where s.kind = v_of.kind and s.name = v_of.name
              order by f.id
              limit 1) h
           where h.lane = p_lane
             and h.token is null
             and h.run_at <= p_now
             and not exists (
               select from "aftercommit".letters x
                where x.kind = v_of.kind and x.owner = h.owner and x.key = k.key and x.parks
                  and (x.status = 'dead' or x.status = 'redriving' and x.delivery is not null and x.placed is null))
          union all
          (select d.segment, d.id, d.run_at
             from "aftercommit".deliveries d
            where d.lane = p_lane and not d.ordered and d.token is null and d.run_at <= p_now
            order by d.run_at, d.id
            limit p_most)) c
   order by c.run_at, c.id
   limit p_most;
end
$aftercommit$;
revoke all on function "aftercommit"."first_in_turn" from public;
comment on function "aftercommit"."first_in_turn" is 'Rows that may be done next in a lane with an order: the first row of each key that has one due here, unless it is in another lane of the name or a dead letter stands before it, and every row without an order.';
-- grants: run
-- Takes due work of the registered names, lanes in turn, higher priorities first. Rows of a worker that is gone are taken
-- one at a time, if p_suspects, and come with `suspect`: one of them may be what ended it.
-- p_token is new with every claim, and chosen by the worker: it knows what to give back when the answer gets lost.
-- p_running: how many it works on now for each destination; kept for limits. p_shares: the same, and for each name without a
-- destination, with a space before it. It takes at most p_most for a destination and p_most_named for such a name. p_places:
-- how many it could begin at once. p_hanging: shares whose calls take so long that it wants no more for them now.
create or replace function "aftercommit".claim_deliveries(
  p_worker text, p_token bigint, p_names jsonb, p_limit integer, p_suspects boolean, p_running jsonb, p_most integer,
  p_places integer default 10000, p_hanging jsonb default '[]', p_shares jsonb default '{}', p_most_named integer default 10000)
returns table (segment smallint, id bigint, lane integer, owner text, key text, payload text, attempts integer,
               created_ms double precision, token bigint, suspect boolean, letter bigint)
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
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
  perform from "aftercommit".delivery_workers w
   where w.worker = p_worker and exists (select from "aftercommit".live_leases l where l.lease = p_worker) for key share;
  if not found then
    raise exception 'The lease of this worker ran out, so nothing was claimed.' using errcode = 'AC010';
  end if;
  if p_running is not null then
    update "aftercommit".delivery_workers set running = p_running where worker = p_worker and running <> p_running;
  end if;

  if p_suspects and exists (
    select from "aftercommit".delivery_workers w where not exists (select from "aftercommit".live_leases l where l.lease = w.worker)) then
    -- The first of each destination: one that takes nothing now must not keep the others waiting. A claimed row was due, so
    -- rows that are due later are not looked at. Who is alive is asked with the same snapshot: claims may be younger than this one.
    for v_suspect in
      select distinct on (l.destination) d.segment, d.id, d.token, l.destination
        from jsonb_to_recordset(p_names) as n(kind text, name text)
        join "aftercommit".delivery_lanes l on l.kind = n.kind and l.name = n.name
        left join "aftercommit".delivery_pauses p on p.kind = l.kind and p.name = l.name
        left join "aftercommit".destinations t on t.destination = l.destination and t.paused
       cross join lateral (
         select d.segment, d.id, d.token
           from "aftercommit".deliveries d
          where d.lane = l.lane and d.run_at <= v_now and d.token is not null
            and not exists (select from "aftercommit".live_leases g where g.lease = d.worker)
          order by d.run_at, d.id
          limit 1) d
       where p.kind is null and t.destination is null
       order by l.destination, d.id
    loop
      perform from "aftercommit".deliveries d
        where d.segment = v_suspect.segment and d.id = v_suspect.id and d.token = v_suspect.token
          for update skip locked;
      continue when not found;
      continue when "aftercommit".grant_deliveries(p_worker, v_suspect.destination, 1, 1, 1) < 1;
      return query
      update "aftercommit".deliveries d
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
      from "aftercommit".due_lanes(p_names, 500) b
      join "aftercommit".delivery_lanes l on l.lane = b
      join jsonb_to_recordset(p_names) as n(kind text, name text) on n.kind = l.kind and n.name = l.name
      left join "aftercommit".delivery_pauses p on p.kind = l.kind and p.name = l.name
      left join "aftercommit".destinations t on t.destination = l.destination
     where p.kind is null
       -- A destination that takes nothing now would use up the turns of others, with all its tenants.
       and not coalesce(t.paused or t.resting_until > v_now or t.open_until > v_now, false)
       and (t.concurrency is not null
            or case when l.destination = '' then coalesce((p_shares ->> (' ' || l.name))::integer, 0) < p_most_named
                    else coalesce((p_shares ->> l.destination)::integer, 0) < p_most end)
       and not p_hanging ? case when l.destination = '' then ' ' || l.name else l.destination end
       and exists (select from "aftercommit".deliveries d
                    where d.lane = l.lane and d.run_at <= v_now and d.token is null)
     group by l.priority
     order by l.priority desc
  loop
    exit when v_left <= 0;
    return query
    with turns as materialized (
      -- A row that waits for an earlier one of its key is not wanted: it would use up the grant of others.
      select t.lane, due.ordered, "aftercommit".grant_deliveries(p_worker, t.destination,
               case
                 when t.destination = '' then t.share
                 when due.ordered then (select count(*)::integer from "aftercommit".first_in_turn(t.lane, v_now, t.share))
                 else due.count
               end,
               case when t.destination = '' then p_most_named else p_most end
                 - coalesce((p_shares ->> t.of)::integer, 0) - (t.nth - 1) * t.share, p_places) as granted
        from (select l.lane, l.destination, case when l.destination = '' then ' ' || l.name else l.destination end as of,
                     greatest(1, v_left / cardinality(v_level.lanes)) as share,
                     -- Of one destination too, any lane may be the first, and have what there is to have.
                     row_number() over (partition by l.destination, case when l.destination = '' then l.name end order by u.at)::integer as nth
                from unnest(v_level.lanes[1 : v_left]) with ordinality as u(lane, at)
                join "aftercommit".delivery_lanes l on l.lane = u.lane) t
       cross join lateral (
         select count(*)::integer as count, coalesce(bool_or(d.ordered), false) as ordered
           from (select d.ordered
                   from "aftercommit".deliveries d
                  where d.lane = t.lane and d.run_at <= v_now and d.token is null
                  order by d.run_at, d.id
                  limit t.share) d) due),
    picked as materialized (
      select d.segment, d.id
        from turns t
       cross join lateral (
         select d.segment, d.id
           from "aftercommit".deliveries d
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
           from "aftercommit".first_in_turn(t.lane, v_now, t.granted) f
          cross join lateral (
            -- One, by its key: a join may read all rows where the plan was made before there were many.
            select d.segment, d.id
              from "aftercommit".deliveries d
             where d.segment = f.segment and d.id = f.id and d.token is null
             limit 1
               for update skip locked) d
          limit t.granted) d
       where t.ordered and t.granted > 0)
    update "aftercommit".deliveries d
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
revoke all on function "aftercommit"."claim_deliveries" from public;
comment on function "aftercommit"."claim_deliveries" is 'Takes due work of the registered names, lanes in turn, higher priorities first. Rows of a worker that is gone are taken one at a time, if p_suspects, and come with `suspect`: one of them may be what ended it. p_token is new with every claim, and chosen by the worker: it knows what to give back when the answer gets lost. p_running: how many it works on now for each destination; kept for limits. p_shares: the same, and for each name without a destination, with a space before it. It takes at most p_most for a destination and p_most_named for such a name. p_places: how many it could begin at once. p_hanging: shares whose calls take so long that it wants no more for them now.';
-- grants: run
-- Makes the lane if it is new. A statement of its own: a lane may outlive the transaction that first wanted it.
create or replace function "aftercommit".delivery_lane(
  p_kind text, p_name text, p_destination text, p_tenant text, p_priority smallint)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_lane integer;
begin
  loop
    select lane into v_lane from "aftercommit".delivery_lanes
     where kind = p_kind and name = p_name and destination = p_destination and tenant = p_tenant and priority = p_priority;
    if found then return v_lane; end if;
    insert into "aftercommit".delivery_lanes (kind, name, destination, tenant, priority)
    values (p_kind, p_name, p_destination, p_tenant, p_priority)
    on conflict do nothing
    returning lane into v_lane;
    if found then return v_lane; end if;
  end loop;
end
$aftercommit$;
revoke all on function "aftercommit"."delivery_lane" from public;
comment on function "aftercommit"."delivery_lane" is 'Makes the lane if it is new. A statement of its own: a lane may outlive the transaction that first wanted it.';
-- grants: none
-- The numbers of these lanes, in their order; those that are new are made. Two transactions that make the same lanes wait
-- for each other in one order, so neither ends in a deadlock.
create or replace function "aftercommit".delivery_lane_numbers(p_lanes jsonb) returns integer[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  insert into "aftercommit".delivery_lanes (kind, name, destination, tenant, priority)
  select r.kind, r.name, r.destination, r.tenant, r.priority
    from jsonb_to_recordset(p_lanes) as r(kind text, name text, destination text, tenant text, priority smallint)
   where not exists (
     select from "aftercommit".delivery_lanes l
      where l.kind = r.kind and l.name = r.name and l.destination = r.destination and l.tenant = r.tenant and l.priority = r.priority)
   order by r.kind, r.name, r.destination, r.tenant, r.priority
  on conflict do nothing;
  return array(
    select l.lane
      from rows from (jsonb_to_recordset(p_lanes) as (kind text, name text, destination text, tenant text, priority smallint))
           with ordinality as r(kind, name, destination, tenant, priority, nth)
      join "aftercommit".delivery_lanes l
        on l.kind = r.kind and l.name = r.name and l.destination = r.destination and l.tenant = r.tenant and l.priority = r.priority
     order by r.nth);
end
$aftercommit$;
revoke all on function "aftercommit"."delivery_lane_numbers" from public;
comment on function "aftercommit"."delivery_lane_numbers" is 'The numbers of these lanes, in their order; those that are new are made. Two transactions that make the same lanes wait for each other in one order, so neither ends in a deadlock.';
-- grants: run
-- Whether something of the registered names could be done now but for a limit, a circuit or a rest of its destination. Rows
-- that are paused, or stand behind a dead letter, wait for an operator, perhaps for ever, and do not count.
-- Every lane is looked at: the caller ends its work when the answer is no.
create or replace function "aftercommit".has_due_deliveries(p_names jsonb) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
begin
  return exists (
    select from jsonb_to_recordset(p_names) as n(kind text, name text)
      join "aftercommit".delivery_lanes l on l.kind = n.kind and l.name = n.name
      left join "aftercommit".delivery_pauses p on p.kind = l.kind and p.name = l.name
      left join "aftercommit".destinations t on t.destination = l.destination and t.paused
     where p.kind is null and t.destination is null
       and case
             when not exists (select from "aftercommit".deliveries d where d.lane = l.lane and d.run_at <= v_now and d.token is null) then false
             when exists (select from "aftercommit".deliveries d
                           where d.lane = l.lane and d.run_at <= v_now and d.token is null and not d.ordered) then true
             else exists (select from "aftercommit".first_in_turn(l.lane, v_now, 1))
           end);
end
$aftercommit$;
revoke all on function "aftercommit"."has_due_deliveries" from public;
comment on function "aftercommit"."has_due_deliveries" is 'Whether something of the registered names could be done now but for a limit, a circuit or a rest of its destination. Rows that are paused, or stand behind a dead letter, wait for an operator, perhaps for ever, and do not count. Every lane is looked at: the caller ends its work when the answer is no.';
-- grants: run
-- In how many milliseconds something of the registered names is due; null when nothing waits. A row that is due
-- already and was not claimed waits for a limit, an earlier row of its key or a dead worker: soon is early enough.
create or replace function "aftercommit".next_delivery_ms(p_names jsonb) returns double precision
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_next timestamptz;
  v_lanes integer[] := array(select "aftercommit".due_lanes(p_names, 500));
begin
  -- There may be more lanes than were looked at.
  if array_position(v_lanes, null) is not null then return 0; end if;
  -- A destination that rests or is probed may be well before its time, and nobody is notified: a look every second finds it.
  select min(greatest(f.run_at, case when t.open_until > v_now or t.resting_until > v_now
                                     then least(greatest(t.open_until, t.resting_until), v_now + interval '1 second') end))
    into v_next
    from unnest(v_lanes) b
    join "aftercommit".delivery_lanes l on l.lane = b
    join jsonb_to_recordset(p_names) as n(kind text, name text) on n.kind = l.kind and n.name = l.name
    left join "aftercommit".delivery_pauses p on p.kind = l.kind and p.name = l.name
    left join "aftercommit".destinations t on t.destination = l.destination
   cross join lateral (
     select d.run_at from "aftercommit".deliveries d where d.lane = l.lane and d.token is null order by d.run_at, d.id limit 1) f
   where p.kind is null and not coalesce(t.paused, false);
  -- Of any name: at worst one look for nothing.
  v_next := least(v_next, (
    select d.run_at from "aftercommit".deliveries d where d.segment = 0 and d.run_at > v_now and d.token is null order by d.run_at limit 1));
  -- Of nothing and zero, greatest() would make zero.
  return case when v_next is not null then greatest(extract(epoch from v_next - v_now) * 1000, 0) end;
end
$aftercommit$;
revoke all on function "aftercommit"."next_delivery_ms" from public;
comment on function "aftercommit"."next_delivery_ms" is 'In how many milliseconds something of the registered names is due; null when nothing waits. A row that is due already and was not claimed waits for a limit, an earlier row of its key or a dead worker: soon is early enough.';
-- grants: run
-- Empties segments that have run dry and makes the next one current. TRUNCATE needs an exclusive lock for a moment: it is
-- asked for with a short timeout, and the segment is looked at again under it. Returns what was done.
create or replace function "aftercommit".rotate_deliveries(p_least bigint) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '30ms' as $aftercommit$
declare
  v_state record;
  v_next smallint;
  v_last bigint := coalesce(pg_sequence_last_value('"aftercommit".delivery_ids'::regclass), 0);
  v_empty boolean;
  v_done text[] := '{}';
begin
  -- The second look under the lock must see what was committed meanwhile.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Segments are only rotated in a transaction at READ COMMITTED.';
  end if;
  select * into v_state from "aftercommit".delivery_state for update skip locked;
  if not found then return v_done; end if;
  for v_segment in 1 .. 4 loop
    continue when v_segment = v_state.segment
      or pg_relation_size(format('%I.deliveries_%s', 'aftercommit', v_segment)::regclass) = 0;
    execute format('select not exists (select from %I.deliveries_%s)', 'aftercommit', v_segment) into v_empty;
    continue when not v_empty;
    begin
      execute format('lock table %I.deliveries_%s in access exclusive mode', 'aftercommit', v_segment);
      execute format('select not exists (select from %I.deliveries_%s)', 'aftercommit', v_segment) into v_empty;
      if v_empty then
        execute format('truncate %I.deliveries_%s', 'aftercommit', v_segment);
        v_done := v_done || format('truncated %s', v_segment);
      end if;
    exception when lock_not_available then
      null;
    end;
  end loop;
  v_next := v_state.segment % 4 + 1;
  if v_last - v_state.since_id >= p_least
     and pg_relation_size(format('%I.deliveries_%s', 'aftercommit', v_next)::regclass) = 0 then
    update "aftercommit".delivery_state set segment = v_next, since_id = v_last;
    v_done := v_done || format('current %s', v_next);
  end if;
  return v_done;
end
$aftercommit$;
revoke all on function "aftercommit"."rotate_deliveries" from public;
comment on function "aftercommit"."rotate_deliveries" is 'Empties segments that have run dry and makes the next one current. TRUNCATE needs an exclusive lock for a moment: it is asked for with a short timeout, and the segment is looked at again under it. Returns what was done.';
-- grants: run
-- How many calls that wait in a process may become rows for other processes, by name: p_places for each other live worker
-- that names the work, less the due rows of these lanes that no worker has claimed.
create or replace function "aftercommit".surplus_room(p_worker text, p_lanes jsonb, p_places integer)
returns table (kind text, name text, room integer)
language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off
as $aftercommit$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_of record;
  v_room integer;
begin
  for v_of in select distinct a.kind, a.name from jsonb_to_recordset(p_lanes) as a(kind text, name text) loop
    select count(*)::integer * p_places into v_room
      from "aftercommit".delivery_workers w
      join "aftercommit".live_leases g on g.lease = w.worker
     where w.worker <> p_worker
       and w.names @> jsonb_build_array(jsonb_build_object('kind', v_of.kind, 'name', v_of.name));
    if v_room > 0 then
      select v_room - count(*)::integer into v_room
        from (select from jsonb_to_recordset(p_lanes) as a(kind text, name text, destination text, tenant text, priority smallint)
                join "aftercommit".delivery_lanes l
                  on l.kind = a.kind and l.name = a.name and l.destination = a.destination and l.tenant = a.tenant and l.priority = a.priority
               cross join lateral (
                 select from "aftercommit".deliveries d
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
revoke all on function "aftercommit"."surplus_room" from public;
comment on function "aftercommit"."surplus_room" is 'How many calls that wait in a process may become rows for other processes, by name: p_places for each other live worker that names the work, less the due rows of these lanes that no worker has claimed.';
-- grants: run
-- Appends an event of the library itself, whose type begins with `aftercommit.`: the way in of running processes alone, because
-- every process acts on such events. The id is chosen. Returns the position.
create or replace function "aftercommit".append_own(p_id text, p_type text, p_payload jsonb, p_metadata jsonb, p_level integer default null)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_content bytea := "aftercommit".content_of(p_type, null, null, null, p_payload, null);
  v_known text := "aftercommit".place_of_id(p_id, v_content);
  v_position bigint;
begin
  if p_level < 14 then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if not p_type ^@ 'aftercommit.' then
    raise exception 'Event type % is not one of the library itself; nothing was emitted.', quote_nullable(left(p_type, 80))
      using errcode = 'AC003';
  end if;
  if v_known is not null then return v_known::bigint; end if;
  perform "aftercommit".check_event(null, null, null, p_payload, p_metadata, null);
  -- Readers wait for transactions that hold the locks of events and of the sequence: this one comes first (decision 0001).
  lock table only "aftercommit".events in row exclusive mode;
  v_position := nextval('"aftercommit".positions');
  insert into "aftercommit".event_ids (id, position, content) values (p_id, v_position, v_content) on conflict (id) do nothing;
  if not found then return "aftercommit".place_of_id(p_id, v_content)::bigint; end if;
  insert into "aftercommit".events (position, id, type, payload, metadata, occurred_at)
  values (v_position, p_id, p_type, p_payload, p_metadata, clock_timestamp());
  return v_position;
end
$aftercommit$;
revoke all on function "aftercommit"."append_own" from public;
comment on function "aftercommit"."append_own" is 'Appends an event of the library itself, whose type begins with `aftercommit.`: the way in of running processes alone, because every process acts on such events. The id is chosen. Returns the position.';
-- grants: run
-- Server, timeline and database: a history that goes on elsewhere is another history.
create or replace function "aftercommit".log_identity() returns text
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select format('%s/%s/%s',
    (select system_identifier from pg_control_system()),
    case when pg_is_in_recovery() then '-' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end,
    (select oid from pg_database where datname = current_database()))
$aftercommit$;
revoke all on function "aftercommit"."log_identity" from public;
comment on function "aftercommit"."log_identity" is 'Server, timeline and database: a history that goes on elsewhere is another history.';
-- grants: none
-- Whether the event that proves the history is missing, or another event has its position. Retention may remove it.
create or replace function "aftercommit".witness_is_gone(p_witness bigint, p_witness_id text, p_kept_from bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return p_witness > 0 and p_witness >= p_kept_from and not exists (
    select from "aftercommit".events where position = p_witness and (p_witness_id = '' or id = p_witness_id));
end
$aftercommit$;
revoke all on function "aftercommit"."witness_is_gone" from public;
comment on function "aftercommit"."witness_is_gone" is 'Whether the event that proves the history is missing, or another event has its position. Retention may remove it.';
-- grants: none
-- The lowest position from which partitions follow each other without a gap up to the open one; null without partitions.
create or replace function "aftercommit".unbroken_from() returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with bounds as (
    select substring(b from 'FROM \(''?(\d+)')::bigint as low, substring(b from 'TO \(''?(\d+)')::bigint as high
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     cross join lateral pg_get_expr(c.relpartbound, c.oid) as p(b)
     where i.inhparent = to_regclass(format('%I.events', 'aftercommit')))
  select max(low) from bounds l where not exists (select from bounds p where p.high = l.low)
$aftercommit$;
revoke all on function "aftercommit"."unbroken_from" from public;
comment on function "aftercommit"."unbroken_from" is 'The lowest position from which partitions follow each other without a gap up to the open one; null without partitions.';
-- grants: none
-- The lowest event at or below a position that was recorded after a time; null where there is none. Walks down, and ends
-- once 1,000 events in a row are older: positions that were given out again stand close together.
create or replace function "aftercommit".first_late(p_position bigint, p_after timestamptz) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  r record;
  v_late bigint;
  v_older integer := 0;
begin
  for r in select position, recorded_at from "aftercommit".events where position <= p_position order by position desc loop
    if r.recorded_at > p_after then
      v_late := r.position;
      v_older := 0;
    else
      v_older := v_older + 1;
      exit when v_older = 1000;
    end if;
  end loop;
  return v_late;
end
$aftercommit$;
revoke all on function "aftercommit"."first_late" from public;
comment on function "aftercommit"."first_late" is 'The lowest event at or below a position that was recorded after a time; null where there is none. Walks down, and ends once 1,000 events in a row are older: positions that were given out again stand close together.';
-- grants: run
-- Looks whether history can have forked since the last look, and begins a new epoch if so; o_began says why. o_problem is
-- set when the log cannot be read safely at all. The order of the reads matters: the state first, the sequence last, so
-- that appends and readers at work in between only move the later values up. A suspicion is looked at again under the
-- row lock, which also decides between processes that notice together.
create or replace function "aftercommit".check_log(out o_epoch integer, out o_frontier bigint, out o_head bigint, out o_began text, out o_problem text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_state record;
  v_identity text := "aftercommit".log_identity();
  v_sequence bigint;
  v_cache bigint;
  v_events regclass := to_regclass(format('%I.events', 'aftercommit'));
  v_gone boolean;
  v_witness bigint;
  v_locked boolean := false;
  v_renumbered boolean;
  v_shared bigint;
  v_late bigint;
  v_kept bigint;
begin
  select seqcache into v_cache from pg_sequence where seqrelid = '"aftercommit".positions'::regclass;
  if v_cache <> 1 then
    o_problem := format('The sequence %s has CACHE %s: sessions hand out old numbers late, so events could be skipped. Run: alter sequence %s cache 1',
      '"aftercommit".positions', v_cache, '"aftercommit".positions');
  elsif exists (
    select from pg_subscription_rel s
     where s.srrelid = v_events or s.srrelid in (select inhrelid from pg_inherits where inhparent = v_events)) then
    o_problem := 'A logical subscription writes this log: its events come with the positions of another server in the order of their commits, so events could be skipped. Read the log on the server where they are emitted.';
  elsif pg_is_in_recovery() then
    o_problem := 'This server is a standby: its locks do not show who is appending on the primary.';
  end if;

  loop
    select * into v_state from "aftercommit".log_state;
    v_gone := "aftercommit".witness_is_gone(v_state.witness, v_state.witness_id, v_state.kept_from);
    v_kept := "aftercommit".unbroken_from();
    select coalesce(max(position), 0) into o_head from "aftercommit".events;
    select case when is_called then last_value else last_value - 1 end into v_sequence from "aftercommit".positions;

    o_began := case
      when v_state.identity <> v_identity then 'the database was restored, promoted or moved'
      when v_gone then 'events were removed'
      when v_sequence < greatest(o_head, v_state.frontier) then 'the sequence was set back'
      -- A gap above the head is no loss: nothing was written there.
      when v_kept > v_state.kept_from and v_kept <= greatest(o_head, v_state.frontier) + 1 then 'a partition was removed'
    end;
    exit when o_began is null or v_locked or pg_is_in_recovery();
    perform from "aftercommit".log_state for update;
    v_locked := true;
  end loop;

  if o_began is not null and v_locked then
    -- Positions that were final and were given out once more since.
    if v_gone or v_sequence < v_state.frontier then
      v_late := "aftercommit".first_late(v_state.frontier, v_state.published_at);
    end if;
    v_renumbered := v_gone and (v_sequence < v_state.frontier
      or v_late is not null and not exists (select from "aftercommit".events where position < v_late));
    -- What both histories surely share. After a restore or promotion that is what was published as final: the head may
    -- hold events of the new history already.
    v_shared := case
      when v_renumbered then 0
      when v_late is not null then v_late - 1
      when v_gone or v_state.identity <> v_identity then v_state.frontier
      else greatest(o_head, v_state.frontier)
    end;
    if not v_renumbered and v_sequence < greatest(o_head, v_state.frontier) then
      perform setval('"aftercommit".positions', greatest(o_head, v_state.frontier));
    end if;
    -- For verify: which events came after the frontier had passed their positions.
    if v_late is not null and not v_renumbered then
      insert into "aftercommit".frontier_marks (at, frontier) values (v_state.published_at, v_state.frontier) on conflict do nothing;
    end if;
    update "aftercommit".log_state
       set epoch = epoch + 1, identity = v_identity, witness = 0, witness_id = '', published_at = clock_timestamp(),
           frontier = case when v_renumbered or v_late is not null then v_shared else frontier end,
           -- What was removed is lost for every reader that had not come so far.
           kept_from = case
             when v_renumbered or v_late is not null then kept_from
             else greatest(kept_from, case when v_gone then frontier + 1 end,
                           case when v_kept <= greatest(o_head, frontier) + 1 then v_kept end)
           end
    returning * into v_state;
    insert into "aftercommit".epochs (epoch, began_after, reason)
    values (v_state.epoch, v_shared, o_began)
    on conflict (epoch) do nothing;
    -- Checkpoints in this database are part of the same history as its events, unless that was numbered anew or somebody
    -- moved one beyond it: they go on.
    -- The new term keeps a process that still remembers the other history from writing over them.
    update "aftercommit".subscription_partitions
       set term = term + 1, owner = null, clean = true,
           epoch = case when v_renumbered or position > greatest(v_sequence, o_head) or position >= v_late
                     then epoch else v_state.epoch end;
    -- What a process believes to hold may belong to the other history: each lease ends, and with it what names it. Claims
    -- of work that was done in the other history only would be held for as long as their worker lives.
    update "aftercommit".processes set lease = null, lease_until = null where lease is not null;
    update "aftercommit".deliveries d
       set token = null, worker = null, alone = false, attempts = greatest(d.attempts - 1, 0)
     where (d.segment, d.id) in (select c.segment, c.id from "aftercommit".deliveries c where c.token is not null for update skip locked);
  else
    o_began := null;
    -- There is no witness yet, or retention has passed it: the newest event that is final takes its place.
    if v_state.witness < greatest(v_state.kept_from, 1) and not pg_is_in_recovery() then
      select max(position) into v_witness from "aftercommit".events where position <= v_state.frontier;
      update "aftercommit".log_state
         set witness = v_witness, witness_id = (select id from "aftercommit".events where position = v_witness)
       where epoch = v_state.epoch and witness < v_witness;
    end if;
  end if;
  o_epoch := v_state.epoch;
  o_frontier := v_state.frontier;
end
$aftercommit$;
revoke all on function "aftercommit"."check_log" from public;
comment on function "aftercommit"."check_log" is 'Looks whether history can have forked since the last look, and begins a new epoch if so; o_began says why. o_problem is set when the log cannot be read safely at all. The order of the reads matters: the state first, the sequence last, so that appends and readers at work in between only move the later values up. A suspicion is looked at again under the row lock, which also decides between processes that notice together.';
-- grants: run
-- Declares that aggregates of this type are kept as streams, with versions 1, 2, … Plain events of the type that exist
-- already are refused, or adopted: they keep no version, and each stream goes on from their number.
create or replace function "aftercommit".declare_stream(aggregate_type text, adopt boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $aftercommit$
#variable_conflict use_variable
declare
  v_type text := aggregate_type;
  v_plain boolean;
begin
  if exists (select from "aftercommit".stream_types t where t.aggregate_type = v_type) then return false; end if;
  -- Appenders look here before they write, and keep that lock to their end. So those that did not see the declaration
  -- have ended, and new ones wait until it commits. A lock on events would come after their look, which is too late.
  lock table "aftercommit".stream_types in access exclusive mode;
  if exists (select from "aftercommit".captured_tables c where c.aggregate_type = v_type) then
    raise exception 'Aggregate type % is that of a captured table, whose events have no versions; it was not declared as a stream.', v_type
      using errcode = 'AC017', hint = 'Capture the table under another aggregate type first.';
  end if;
  v_plain := exists (select from "aftercommit".events e where e.aggregate_type = v_type);
  if v_plain and not adopt then
    raise exception 'Aggregate type % has plain events already, so it was not declared as a stream.', v_type
      using errcode = 'AC007', hint = 'Pass adopt => true to go on from them.';
  end if;
  insert into "aftercommit".stream_types (aggregate_type, adopted) values (v_type, v_plain) on conflict do nothing;
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."declare_stream" from public;
comment on function "aftercommit"."declare_stream" is 'Declares that aggregates of this type are kept as streams, with versions 1, 2, … Plain events of the type that exist already are refused, or adopted: they keep no version, and each stream goes on from their number.';
-- grants: emit
-- Emits an event from SQL, in the transaction of the caller, and returns its position. User, cause and tenant come from the
-- session settings aftercommit.*, where '' counts as unset; the parameter `tenant` wins over its setting. `previous` is the
-- image before the change.
-- An event with a payload and nothing else takes a short way: one expression finds it without fault, and append() writes it
-- with what the settings of the session add. The long way names the fault, and builds metadata and extras.
create or replace function "aftercommit".emit(
  type text, aggregate_type text, aggregate_id text, payload jsonb,
  changes jsonb default null, metadata jsonb default null, id text default null, occurred_at timestamptz default null,
  previous jsonb default null, tenant text default null)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_new text;
begin
  if coalesce(changes, previous, metadata) is null and id is null and coalesce(tenant, '') = ''
     and type ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' and length(type) <= 200
     and (aggregate_type is null) = (aggregate_id is null) then
    v_new := "aftercommit".new_id();
    return split_part("aftercommit".append(v_new, type, aggregate_type, aggregate_id, payload,
      ('{"correlation_id": "' || v_new || '"}')::jsonb, occurred_at), ':', 1)::bigint;
  end if;

  declare
    v_id text := coalesce(id, "aftercommit".new_id());
    v_metadata jsonb := coalesce(metadata, '{}');
    v_depth integer := coalesce(nullif(current_setting('aftercommit.depth', true), '')::integer, 0);
    v_tenant text := coalesce(nullif(tenant, ''), nullif(current_setting('aftercommit.tenant', true), ''));
    v_extra jsonb;
  begin
    if type is null or type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' or length(type) > 200 then
      raise exception 'Event type % is not a dotted lower-case name like order.placed, so nothing was emitted.', quote_nullable(left(type, 80))
        using errcode = 'AC003';
    end if;
    if (aggregate_type is null) <> (aggregate_id is null) then
      raise exception 'An aggregate has a type and an id of 1 to 255 characters, or neither; nothing was emitted.'
        using errcode = 'AC004';
    end if;
    if v_id = '' or length(v_id) > 255 then
      raise exception 'An event id has 1 to 255 characters; nothing was emitted.' using errcode = 'AC004';
    end if;
    if jsonb_typeof(previous) not in ('object', 'null') then
      raise exception 'previous must be a JSON object; nothing was emitted.' using errcode = 'AC004';
    end if;
    if jsonb_typeof(v_metadata) <> 'object' then
      raise exception 'metadata must be a JSON object; nothing was emitted.' using errcode = 'AC004';
    end if;
    v_depth := greatest(v_depth, coalesce((v_metadata ->> 'depth')::integer, 0));
    if v_depth > 0 and v_depth > (select s.max_depth from "aftercommit".settings s) then
      raise exception '% would be event number % in a chain of causes, more than %; nothing was emitted.',
        type, v_depth, (select s.max_depth from "aftercommit".settings s) using errcode = 'AC006', hint = 'An event probably causes itself.';
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
      'tenant', v_tenant));
    if changes is not null then
      v_extra := v_extra || jsonb_build_object('changes', changes);
    end if;
    if jsonb_typeof(previous) = 'object' then
      v_extra := v_extra || jsonb_build_object('previous', previous);
    end if;
    return split_part("aftercommit".append(v_id, type, aggregate_type, aggregate_id, payload, v_metadata, occurred_at,
      nullif(v_extra, '{}')), ':', 1)::bigint;
  end;
end
$aftercommit$;
revoke all on function "aftercommit"."emit" from public;
comment on function "aftercommit"."emit" is 'Emits an event from SQL, in the transaction of the caller, and returns its position. User, cause and tenant come from the session settings aftercommit.*, where '''' counts as unset; the parameter `tenant` wins over its setting. `previous` is the image before the change. An event with a payload and nothing else takes a short way: one expression finds it without fault, and append() writes it with what the settings of the session add. The long way names the fault, and builds metadata and extras.';
-- grants: emit
-- Lets the caches inside all processes go of these keys once the transaction commits, and returns the position of the event
-- that says so. At most 1,000 keys of at most 1,000 characters each, and no patterns: every process compares them.
create or replace function "aftercommit".invalidate(keys text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_id text := "aftercommit".new_id();
  v_position bigint;
begin
  if coalesce(cardinality(keys), 0) not between 1 and 1000 or exists (select from unnest(keys) key where key is null or length(key) > 1000) then
    raise exception 'invalidate takes 1 to 1,000 keys of at most 1,000 characters each; nothing was emitted.' using errcode = 'AC004';
  end if;
  insert into "aftercommit".events (id, type, payload, metadata, occurred_at)
  values (v_id, 'aftercommit.cache.invalidated', jsonb_build_object('action', 'invalidate', 'keys', to_jsonb(keys), 'patterns', '[]'::jsonb),
    jsonb_build_object('correlation_id', v_id), clock_timestamp())
  returning position into v_position;
  return v_position;
end
$aftercommit$;
revoke all on function "aftercommit"."invalidate" from public;
comment on function "aftercommit"."invalidate" is 'Lets the caches inside all processes go of these keys once the transaction commits, and returns the position of the event that says so. At most 1,000 keys of at most 1,000 characters each, and no patterns: every process compares them.';
-- grants: run
-- Lets batches that append chosen ids take their turn, in one order, by groups of ids: two of them with the same ids in another
-- order would each hold what the other waits for. Rows of a table that roles have no rights on: advisory locks could be taken,
-- and kept, by any role that connects.
create or replace function "aftercommit".lock_ids(p_ids text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  perform from "aftercommit".id_turns
    where turn in (select get_byte(sha256(convert_to(id, 'UTF8')), 0) & 63 from unnest(p_ids) id)
    order by turn
      for update;
end
$aftercommit$;
revoke all on function "aftercommit"."lock_ids" from public;
comment on function "aftercommit"."lock_ids" is 'Lets batches that append chosen ids take their turn, in one order, by groups of ids: two of them with the same ids in another order would each hold what the other waits for. Rows of a table that roles have no rights on: advisory locks could be taken, and kept, by any role that connects.';
-- grants: run
-- Publishes the frontier, on which other processes, standbys and bridges rely. It never moves back within an epoch. False
-- tells the caller to run check_log: the epoch is another one, or the sequence, the witness or the identity of the server
-- does not agree with what was published before or with the frontier to publish. Nothing is published then. The witness counts
-- where it stands below the frontier and holds an event.
create or replace function "aftercommit".publish_frontier(p_epoch integer, p_frontier bigint, p_witness bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_state record;
  v_witness_id text;
begin
  select * into v_state from "aftercommit".log_state;
  if v_state.epoch <> p_epoch or v_state.identity <> "aftercommit".log_identity()
     or greatest(v_state.frontier, p_frontier) > (select case when is_called then last_value else last_value - 1 end from "aftercommit".positions)
     or "aftercommit".witness_is_gone(v_state.witness, v_state.witness_id, v_state.kept_from)
  then
    return false;
  end if;
  if p_witness > v_state.witness and p_witness <= p_frontier then
    select id into v_witness_id from "aftercommit".events where position = p_witness;
  end if;
  update "aftercommit".log_state
     set frontier = p_frontier, published_at = clock_timestamp(),
         witness_id = coalesce(v_witness_id, witness_id),
         witness = case when v_witness_id is null then witness else p_witness end
   where epoch = p_epoch and frontier < p_frontier;
  if not found then return true; end if;
  insert into "aftercommit".frontier_marks (frontier)
  select p_frontier
   where not exists (select from "aftercommit".frontier_marks where at > clock_timestamp() - interval '1 minute')
  on conflict do nothing;
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."publish_frontier" from public;
comment on function "aftercommit"."publish_frontier" is 'Publishes the frontier, on which other processes, standbys and bridges rely. It never moves back within an epoch. False tells the caller to run check_log: the epoch is another one, or the sequence, the witness or the identity of the server does not agree with what was published before or with the frontier to publish. Nothing is published then. The witness counts where it stands below the frontier and holds an event.';
-- grants: none
-- Refuses TRUNCATE of the log: readers would take the numbers of removed events for rolled back.
create or replace function "aftercommit".refuse_truncate() returns trigger
language plpgsql as $aftercommit$
begin
  raise exception 'The log is not truncated: readers would take its numbers for rolled back.'
    using errcode = 'AC008', hint = 'Set a retention, or drop the schema to start anew.';
end
$aftercommit$;
revoke all on function "aftercommit"."refuse_truncate" from public;
comment on function "aftercommit"."refuse_truncate" is 'Refuses TRUNCATE of the log: readers would take the numbers of removed events for rolled back.';
-- grants: none
-- The doorbell: wakes sleeping readers after a commit. A statement of its own after the insert, so that it sees idle marks
-- written while the insert waited for its locks; above READ COMMITTED it cannot see fresh marks and always rings. The common
-- case under load, no idle reader, costs one look at a table of one page. A full notification queue would fail the commit:
-- above half of it the bell stays silent.
create or replace function "aftercommit".ring() returns trigger
language plpgsql as $aftercommit$
begin
  if current_setting('transaction_isolation') = 'read committed'
     and not exists (select from "aftercommit".idle_marks where idle_until > clock_timestamp()) then
    return null;
  end if;
  if coalesce(current_setting('aftercommit.bell', true), '') <> 'off'
     and (select wake = 'doorbell' from "aftercommit".settings)
     and pg_notification_queue_usage() < 0.5 then
    perform pg_notify('aftercommit_bell', '');
  end if;
  return null;
end
$aftercommit$;
revoke all on function "aftercommit"."ring" from public;
comment on function "aftercommit"."ring" is 'The doorbell: wakes sleeping readers after a commit. A statement of its own after the insert, so that it sees idle marks written while the insert waited for its locks; above READ COMMITTED it cannot see fresh marks and always rings. The common case under load, no idle reader, costs one look at a table of one page. A full notification queue would fail the commit: above half of it the bell stays silent.';
-- grants: run
-- Makes the days to come and drops those whose time is over. Returns what was done.
create or replace function "aftercommit".keep_run_days(p_keep interval) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $aftercommit$
declare
  v_day date;
  v_name text;
  v_done text[] := '{}';
begin
  if p_keep is null or p_keep < interval '1 day' then
    raise exception 'Run records are kept for at least a day, not %; nothing was dropped.', coalesce(p_keep::text, 'null')
      using errcode = 'AC004';
  end if;
  for v_day in select generate_series((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3, interval '1 day')::date loop
    v_name := 'runs_' || to_char(v_day, 'YYYYMMDD');
    continue when to_regclass(format('%I.%I', 'aftercommit', v_name)) is not null;
    begin
      execute format('create table %1$I.%2$I partition of %1$I.runs for values from (%3$L) to (%4$L)', 'aftercommit', v_name,
        v_day::text || ' 00:00:00+00', (v_day + 1)::text || ' 00:00:00+00');
      v_done := v_done || format('made %s', v_name);
    exception
      -- Somebody else made it, or records of that day went elsewhere already: they are fine there.
      when duplicate_table or check_violation or lock_not_available then null;
    end;
  end loop;
  for v_name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = format('%I.runs', 'aftercommit')::regclass
       and c.relname ~ '^runs_\d{8}$'
       and to_date(substr(c.relname, 6), 'YYYYMMDD') < (now() at time zone 'UTC' - p_keep)::date
  loop
    begin
      execute format('drop table %I.%I', 'aftercommit', v_name);
      v_done := v_done || format('dropped %s', v_name);
    exception when lock_not_available then null;
    end;
  end loop;
  delete from "aftercommit".runs_other where at < now() - p_keep;
  return v_done;
end
$aftercommit$;
revoke all on function "aftercommit"."keep_run_days" from public;
comment on function "aftercommit"."keep_run_days" is 'Makes the days to come and drops those whose time is over. Returns what was done.';
-- grants: run
-- Counts a failure and, if no alert about the same was sent for a while, adds one delivery per channel that tells of all
-- failures since the last one. Returns whether it did. The caller's transaction decides whether the failure counts.
create or replace function "aftercommit".raise_alert(p_alert jsonb) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_about text := p_alert ->> 'about';
  v_every interval := make_interval(secs => (p_alert ->> 'every_seconds')::double precision);
  v_before bigint;
begin
  insert into "aftercommit".observer_alerts (observer) values (v_about) on conflict do nothing;
  select count into v_before
    from "aftercommit".observer_alerts
   where observer = v_about and (sent_at is null or sent_at < clock_timestamp() - v_every)
     for update;
  if not found then
    update "aftercommit".observer_alerts set count = count + 1 where observer = v_about;
    return false;
  end if;
  update "aftercommit".observer_alerts set count = 0, sent_at = clock_timestamp() where observer = v_about;
  perform "aftercommit".add_deliveries(jsonb_agg(jsonb_build_object(
            'lane', "aftercommit".delivery_lane('action', channel, '', '', 0::smallint),
            'owner', channel,
            'payload', jsonb_build_object('about', v_about, 'text', p_alert -> 'text', 'count', v_before + 1,
                                          'at', to_jsonb(clock_timestamp())))))
    from jsonb_array_elements_text(p_alert -> 'channels') channel;
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."raise_alert" from public;
comment on function "aftercommit"."raise_alert" is 'Counts a failure and, if no alert about the same was sent for a while, adds one delivery per channel that tells of all failures since the last one. Returns whether it did. The caller''s transaction decides whether the failure counts.';
-- grants: run
-- Moves a checkpoint and writes what the events that it passes leave behind, both or neither: rows for later attempts, dead
-- letters, alerts and run records. An event may leave something before it is finished: `settled` names the owners of those
-- actions, so that the next owner of the subscription does not attempt them again. `p_save` numbers the writes of a subscription, so a write that is repeated because its
-- answer was lost finds its number taken and changes nothing. `resolved` and `waited` are dead letters, and events behind
-- them, that were redriven: they are settled with what they leave. False when the lease changed hands.
create or replace function "aftercommit".save_checkpoint(
  p_id text, p_term bigint, p_server text, p_save bigint, p_position bigint, p_done int8multirange, p_last_event_id text, p_left jsonb)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_server constant text := extract(epoch from pg_postmaster_start_time())::text;
  v_lanes integer[];
begin
  update "aftercommit".subscription_partitions
     set position = p_position, done = p_done, last_event_id = coalesce(p_last_event_id, last_event_id), save = p_save,
         settled = p_left -> 'settled', deaths = case when position < p_position then 0 else deaths end, updated_at = clock_timestamp()
   where id = p_id and term = p_term and save < p_save and v_server = p_server;
  if not found then
    return exists (
      select from "aftercommit".subscription_partitions where id = p_id and term = p_term and save >= p_save and v_server = p_server);
  end if;
  v_lanes := "aftercommit".delivery_lane_numbers(p_left -> 'lanes');
  if p_left -> 'rows' <> '[]' then
    perform "aftercommit".add_deliveries(p_left -> 'rows', v_lanes);
  end if;
  insert into "aftercommit".letters as l
    (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks, delivery)
  select r.kind, r.owner, r.key, r.event_id, r.position, r.event, r.error, r.attempts,
         clock_timestamp() - make_interval(secs => r.since_first_ms / 1000.0), clock_timestamp(), r.ordered,
         case when r.payload is not null then
           jsonb_build_object('id', nextval('"aftercommit".delivery_ids'::regclass), 'lane', v_lanes[r.lane], 'key', r.order_key,
                              'ordered', r.ordered, 'unique_key', null, 'event_id', r.event_id, 'payload', r.payload) end
    from jsonb_to_recordset(p_left -> 'letters') as r(lane integer, kind text, owner text, key text, order_key text, event_id text,
         position bigint, event jsonb, error jsonb, attempts integer, since_first_ms double precision, ordered boolean, payload jsonb)
  on conflict (kind, owner, event_id) do update
    set error = excluded.error, attempts = l.attempts + excluded.attempts, status = 'dead', parks = excluded.parks,
        delivery = excluded.delivery, placed = null, last_attempt_at = excluded.last_attempt_at, changed_at = clock_timestamp();
  if p_left -> 'resolved' <> '[]' then
    update "aftercommit".letters set status = 'resolved', changed_at = clock_timestamp()
     where id in (select value::bigint from jsonb_array_elements_text(p_left -> 'resolved')) and status = 'redriving';
  end if;
  if p_left -> 'waited' <> '[]' then
    delete from "aftercommit".parked
     where owner = p_id and position in (select value::bigint from jsonb_array_elements_text(p_left -> 'waited'));
  end if;
  perform "aftercommit".raise_alert(alert) from jsonb_array_elements(p_left -> 'alerts') alert;
  insert into "aftercommit".runs (event_id, position, owner, event_type, aggregate_type, aggregate_id, tenant, trace_id, attempt, actions,
                            status, duration_ms)
  select r.event_id, r.position, r.observer, r.event_type, r.aggregate_type, r.aggregate_id, r.tenant, r.trace_id, r.attempt,
         r.actions, r.status, r.duration_ms
    from jsonb_to_recordset(p_left -> 'runs') as r(event_id text, position bigint, observer text, event_type text, aggregate_type text,
         aggregate_id text, tenant text, trace_id text, attempt integer, actions jsonb, status text, duration_ms double precision);
  return true;
end
$aftercommit$;
revoke all on function "aftercommit"."save_checkpoint" from public;
comment on function "aftercommit"."save_checkpoint" is 'Moves a checkpoint and writes what the events that it passes leave behind, both or neither: rows for later attempts, dead letters, alerts and run records. An event may leave something before it is finished: `settled` names the owners of those actions, so that the next owner of the subscription does not attempt them again. `p_save` numbers the writes of a subscription, so a write that is repeated because its answer was lost finds its number taken and changes nothing. `resolved` and `waited` are dead letters, and events behind them, that were redriven: they are settled with what they leave. False when the lease changed hands.';
-- grants: none
-- Writes what follows from one input: the instance, snapshots, timers, and what is kept of the input. Its events have these
-- positions; its effects are written already. A caller in REPEATABLE READ may decide on a snapshot that is older than its
-- lock: every insert that can meet a newer row names its conflict, so the caller gets 40001, which is repeated, and not 23505.
create or replace function "aftercommit".commit_step(
  p_type text, p_id text, p_version bigint, p jsonb, p_positions bigint[], p_now timestamptz)
returns void
language plpgsql as $aftercommit$
declare
  v_count integer := coalesce(cardinality(p_positions), 0);
  v_last bigint := p_positions[v_count];
  v_base bigint;
  v_letter bigint;
  v_letters bigint[];
  v_timer jsonb;
  v_at timestamptz;
  v_in_order boolean;
begin
  if p ? 'continues' then
    v_base := case when (p ->> 'continues')::integer = 0 then 0 else p_positions[(p ->> 'continues')::integer] end;
    insert into "aftercommit".workflow_snapshots (type, id, version, position, state_version)
    values (p_type, p_id, p_version + (p ->> 'continues')::integer, v_base, 0)
    on conflict (type, id, version) do nothing;
  end if;
  if p ? 'state' then
    v_base := v_last;
    insert into "aftercommit".workflow_snapshots (type, id, version, position, state_version, state)
    values (p_type, p_id, p_version + v_count, v_last, (p ->> 'state_version')::integer, p -> 'state')
    on conflict (type, id, version) do nothing;
    delete from "aftercommit".workflow_snapshots
     where type = p_type and id = p_id and state is not null
       and version < (select min(k.version)
                        from (select version from "aftercommit".workflow_snapshots
                               where type = p_type and id = p_id and state is not null
                               order by version desc limit (p ->> 'keep')::integer) k);
  end if;

  if v_count > 0 and p_version = 0 then
    if exists (select from "aftercommit".stream_types where aggregate_type = p_type) then
      raise exception 'Workflow type % is a declared stream.', p_type using errcode = 'AC011';
    end if;
    insert into "aftercommit".workflow_instances (type, id, version, generation, unique_key, created_at, last_event_at, last_position,
                                            completed_at, needed_after)
    values (p_type, p_id, v_count, 1 + (p ? 'continues')::integer, case when not p ? 'completed' then p ->> 'key' end, p_now, p_now, v_last,
            case when p ? 'completed' then p_now end, coalesce(v_base, p_positions[1] - 1))
    on conflict (type, id) do nothing;
    if not found then
      raise exception 'Workflow %/% was changed meanwhile.', p_type, p_id using errcode = '40001';
    end if;
  elsif v_count > 0 then
    update "aftercommit".workflow_instances i
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
      delete from "aftercommit".deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key is not null
         -- An input that waited for its instance to be resumed is for the next life as well.
         and (p ? 'completed' or not payload ? 'held')
      returning letter)
    select array_agg(letter) into v_letters from gone where letter is not null;
    update "aftercommit".letters l
       set status = 'discarded', who = 'workflow ' || p_type, reason = 'the workflow is over', changed_at = p_now
     where l.kind = any (case when p ? 'effects_over' then '{timer,effect}' else '{timer}' end::text[])
       and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
       and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
       and (p ? 'completed' or not coalesce(l.delivery -> 'payload' ? 'held', false));
  elsif p ? 'gone' then
    for n in 0 .. jsonb_array_length(p -> 'gone') - 1 loop
      -- With the key as well: the plan may have been made when no index was better than another.
      delete from "aftercommit".deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key = p -> 'gone' ->> n
      returning letter into v_letter;
      if v_letter is not null then v_letters := v_letters || v_letter; end if;
    end loop;
    -- A dead letter of a timer that was replaced or cancelled is not to fire it again. There is hardly ever one.
    if exists (select from "aftercommit".letters where kind = 'timer' and owner = p_type and key = p_id) then
      update "aftercommit".letters l
         set status = 'discarded', who = 'workflow ' || p_type, reason = 'the timer was replaced or cancelled', changed_at = p_now
       where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
         and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
         and l.delivery ->> 'unique_key' = any (array(select jsonb_array_elements_text(p -> 'gone')));
    end if;
  end if;
  if p ? 'completed' then
    delete from "aftercommit".workflow_keys k where k.type = p_type and k.id = p_id and k.unique_key = coalesce(p ->> 'key', p ->> 'held_key');
  end if;
  if p ? 'timers' then
    v_at := to_timestamp((p ->> 'at')::double precision / 1000);
    -- One by one: a statement over all of them takes longer for the few there are.
    for n in 0 .. jsonb_array_length(p -> 'timers') - 1 loop
      v_timer := p -> 'timers' -> n;
      v_in_order := coalesce(v_timer -> 'payload' ->> 'held' = 'in order', false);
      -- It comes again and has a dead letter already, which is to be redriven or discarded.
      continue when v_in_order and exists (
        select from "aftercommit".letters l
         where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
           and l.delivery ->> 'unique_key' = v_timer ->> 'unique_key');
      insert into "aftercommit".deliveries_0 (segment, id, lane, owner, key, ordered, unique_key, payload, created_at, run_at, event_id)
      values (0, nextval('"aftercommit".delivery_ids'::regclass), (p ->> 'timer_lane')::integer, p_type, p_id, v_in_order,
              v_timer ->> 'unique_key', v_timer -> 'payload', v_at, (v_timer ->> 'due')::timestamptz,
              p -> 'events' -> -1 ->> 'id')
      on conflict do nothing;
      if v_in_order then
        update "aftercommit".workflow_instances i set holds = true where i.type = p_type and i.id = p_id and not i.holds;
      end if;
    end loop;
  end if;

  if p ? 'input_id' then
    insert into "aftercommit".workflow_inputs (type, id, input_id, outcome, position)
    values (p_type, p_id, p ->> 'input_id', p -> 'outcome', (p ->> 'input_position')::bigint)
    on conflict do nothing;
  end if;
  if p ? 'seen' then
    insert into "aftercommit".input_observations (type, id, input_id, input_type, input, redacted, outcome, rejection, version, events, decided_at, keep_until)
    values (p_type, p_id, p -> 'seen' ->> 'input_id', p -> 'seen' ->> 'input_type', p -> 'seen' -> 'input',
            (p -> 'seen' ->> 'redacted')::boolean, p -> 'seen' ->> 'outcome', p -> 'seen' -> 'rejection', p_version, v_count,
            to_timestamp((p -> 'seen' ->> 'decided_at')::double precision / 1000),
            p_now + make_interval(secs => (p -> 'seen' ->> 'keep_seconds')::double precision));
  end if;
end
$aftercommit$;
revoke all on function "aftercommit"."commit_step" from public;
comment on function "aftercommit"."commit_step" is 'Writes what follows from one input: the instance, snapshots, timers, and what is kept of the input. Its events have these positions; its effects are written already. A caller in REPEATABLE READ may decide on a snapshot that is older than its lock: every insert that can meet a newer row names its conflict, so the caller gets 40001, which is repeated, and not 23505.';
-- grants: none
-- Whether events of the log wait that came while this instance was paused, be it behind a dead letter of one of them.
create or replace function "aftercommit".holds_events(p_type text, p_id text) returns boolean
language plpgsql stable as $aftercommit$
begin
  return exists (
    select from "aftercommit".delivery_lanes l
      join "aftercommit".deliveries_0 d on d.lane = l.lane
     where l.kind = 'timer' and l.name = p_type and d.key = p_id and d.unique_key is not null and d.ordered)
  or exists (
    select from "aftercommit".letters x
     where x.kind = 'timer' and x.owner = p_type and x.key = p_id and x.parks and x.status in ('dead', 'redriving'));
end
$aftercommit$;
revoke all on function "aftercommit"."holds_events" from public;
comment on function "aftercommit"."holds_events" is 'Whether events of the log wait that came while this instance was paused, be it behind a dead letter of one of them.';
-- grants: none
-- The worker, if it is alive: locked, so that nobody forgets it while claims in its name are not yet to be seen.
create or replace function "aftercommit".live_worker(p_worker text) returns text
language plpgsql as $aftercommit$
declare
  v_worker text;
begin
  select w.worker into v_worker from "aftercommit".delivery_workers w
   where w.worker = p_worker and exists (select from "aftercommit".live_leases l where l.lease = p_worker) for key share;
  return v_worker;
end
$aftercommit$;
revoke all on function "aftercommit"."live_worker" from public;
comment on function "aftercommit"."live_worker" is 'The worker, if it is alive: locked, so that nobody forgets it while claims in its name are not yet to be seen.';
-- grants: run
-- Events of an instance in order, as one JSON list of {version, position, id, type, schema_version, payload}.
create or replace function "aftercommit".workflow_events(p_type text, p_id text, p_after bigint, p_from bigint, p_to bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
begin
  return (
    select '[' || string_agg(format(
             '{"version":%s,"position":%s,"id":%s,"type":%s,"schema_version":%s,"payload":%s}', e.version, e.position, to_json(e.id), to_json(e.type),
             coalesce(e.metadata ->> 'schema_version', '1'), coalesce(e.payload, 'null')), ',' order by e.position) || ']'
      from "aftercommit".events e
     where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position > p_after and e.version between p_from and p_to);
end
$aftercommit$;
revoke all on function "aftercommit"."workflow_events" from public;
comment on function "aftercommit"."workflow_events" is 'Events of an instance in order, as one JSON list of {version, position, id, type, schema_version, payload}.';
-- grants: none
-- Loads an instance from the version that the caller knows, as one JSON object: `version`, `position`, `generation`,
-- `completed`, `paused`, `holds` (events of the log wait for their turn), `unique_key`, `clock_ms`, `outcome` of the input,
-- `snapshot` as {version, state}, `events`, and `follows_known`: the caller knows this history, and the answer goes on from
-- there. A snapshot without a state is the beginning of a new life.
-- With p_lock the instance belongs to this transaction until it ends. An instance that does not exist yet has no row to lock,
-- so the lock is on its name. Without p_wait the answer is null where another transaction has the lock. Everything after the
-- lock is read with a new snapshot, the clock too.
-- For workflow_load and workflow_try alone, which have the planner settings that its statements need: settings of its
-- own would cost a tenth of a step.
create or replace function "aftercommit".load_step(
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
  v_snapshot text;
  v_holds boolean := false;
begin
  if p_lock and p_wait then
    perform pg_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended('aftercommit', 0)));
  elsif p_lock and not pg_try_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended('aftercommit', 0))) then
    return null;
  end if;
  v_clock := floor(extract(epoch from clock_timestamp()) * 1000);
  if p_input_id is not null then
    select i.outcome into v_outcome from "aftercommit".workflow_inputs i
     where i.type = p_type and i.id = p_id and i.input_id = p_input_id;
  end if;
  select * into r from "aftercommit".workflow_instances i where i.type = p_type and i.id = p_id;
  if not found then
    return format(
      '{"version":"0","position":"0","generation":1,"completed":false,"paused":false,"holds":false,"unique_key":null,'
      '"clock_ms":%s,"outcome":%s,"snapshot":null,"events":null,"follows_known":false}',
      v_clock, coalesce(v_outcome::text, 'null'));
  end if;
  -- No step is decided for a time before the last event, also where the clock of the server went back.
  v_clock := greatest(v_clock, floor(extract(epoch from r.last_event_at) * 1000));
  if r.holds then
    v_holds := "aftercommit".holds_events(p_type, p_id);
    if p_lock and not v_holds then
      update "aftercommit".workflow_instances i set holds = false where i.type = p_type and i.id = p_id;
    end if;
  end if;
  -- A caller that remembers a history which was set back remembers nothing of use, also where it has gone on since.
  if v_known > r.version or v_known = r.version and v_after <> r.last_position
     or v_known > 0 and v_known < r.version and not exists (
       select from "aftercommit".events e
        where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position = v_after and e.version = v_known)
  then
    v_known := 0;
    v_after := 0;
  end if;
  if v_outcome is not null then
    -- Only what came of the input is asked for, not the state.
    v_events := "aftercommit".workflow_events(p_type, p_id, 0, (v_outcome ->> 'from')::bigint, (v_outcome ->> 'to')::bigint);
  elsif v_known < r.version then
    select n.version, n.position, n.state::text as state into s
      from "aftercommit".workflow_snapshots n
     where n.type = p_type and n.id = p_id and n.version > v_known and n.version <= coalesce(p_up_to, r.version)
       and (n.state is null or n.state_version = p_state_version)
     order by n.version desc
     limit 1;
    if s.version is not null then v_snapshot := format('{"version":%s%s}', s.version, ',"state":' || s.state); end if;
    v_events := "aftercommit".workflow_events(p_type, p_id, coalesce(s.position, v_after), 1, least(r.version, p_up_to));
  end if;
  return format(
    '{"version":"%s","position":"%s","generation":%s,"completed":%s,"paused":%s,"holds":%s,"unique_key":%s,'
    '"clock_ms":%s,"outcome":%s,"snapshot":%s,"events":%s,"follows_known":%s}',
    r.version, r.last_position, r.generation, (r.completed_at is not null)::text, r.paused::text, v_holds::text,
    coalesce(to_json(r.unique_key)::text, 'null'), v_clock, coalesce(v_outcome::text, 'null'),
    coalesce(v_snapshot, 'null'), coalesce(v_events, 'null'), (v_known > 0)::text);
end
$aftercommit$;
revoke all on function "aftercommit"."load_step" from public;
comment on function "aftercommit"."load_step" is 'Loads an instance from the version that the caller knows, as one JSON object: `version`, `position`, `generation`, `completed`, `paused`, `holds` (events of the log wait for their turn), `unique_key`, `clock_ms`, `outcome` of the input, `snapshot` as {version, state}, `events`, and `follows_known`: the caller knows this history, and the answer goes on from there. A snapshot without a state is the beginning of a new life. With p_lock the instance belongs to this transaction until it ends. An instance that does not exist yet has no row to lock, so the lock is on its name. Without p_wait the answer is null where another transaction has the lock. Everything after the lock is read with a new snapshot, the clock too. For workflow_load and workflow_try alone, which have the planner settings that its statements need: settings of its own would cost a tenth of a step.';
-- grants: none
-- Prepares a step before it writes: deletes the delivery that brought its input, where the claim still stands, and takes its
-- unique key. Returns the instance that has the key already, and takes none then.
create or replace function "aftercommit".open_step(p_type text, p_id text, p jsonb) returns text
language plpgsql as $aftercommit$
declare
  v_letter bigint;
  v_holder text;
begin
  if p ? 'done' then
    -- Under the lock of the instance: a transaction that cancelled this delivery has ended by now, and its outcome is seen.
    delete from "aftercommit".deliveries
     where segment = (p -> 'done' ->> 'segment')::smallint and id = (p -> 'done' ->> 'id')::bigint
       and token = (p -> 'done' ->> 'token')::bigint
    returning letter into v_letter;
    if not found then
      raise exception 'The claim was lost.' using errcode = 'AC014';
    end if;
    if v_letter is not null then
      update "aftercommit".letters set status = 'resolved', changed_at = clock_timestamp() where id = v_letter and status = 'redriving';
    end if;
  end if;
  if p ? 'key' then
    loop
      insert into "aftercommit".workflow_keys (type, unique_key, id) values (p_type, p ->> 'key', p_id) on conflict do nothing;
      exit when found;
      select id into v_holder from "aftercommit".workflow_keys where type = p_type and unique_key = p ->> 'key';
      -- Given back in between.
      continue when not found;
      exit when v_holder = p_id;
      return v_holder;
    end loop;
    delete from "aftercommit".workflow_keys where type = p_type and unique_key = p ->> 'freed' and id = p_id;
  end if;
  return null;
end
$aftercommit$;
revoke all on function "aftercommit"."open_step" from public;
comment on function "aftercommit"."open_step" is 'Prepares a step before it writes: deletes the delivery that brought its input, where the claim still stands, and takes its unique key. Returns the instance that has the key already, and takes none then.';
-- grants: run
-- Writes everything that follows from inputs, and deletes deliveries that ended: all of it, or nothing. The caller holds the
-- locks of workflow_load. A step is {type, id, version, …}, with `events` as {id, type, payload, metadata}, `effects` as
-- {lane, payload} and `timers` as {payload, unique_key, due}; `done` is the delivery that brought its input, as {segment, id,
-- token} like each of p_ended: where its claim was lost, nothing is written. p_level as in append.
-- Returns {segment, deleted: ids, steps: [{position, claimed: ids}]}: the position of the last event of each step, and its
-- effects in `segment` that its worker has claimed already. Or {taken_by}, the instance that has the unique key; where more
-- hangs on it than this one step, that is an error instead.
create or replace function "aftercommit".workflow_commit(p_steps jsonb, p_ended jsonb, p_level integer default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_steps integer := jsonb_array_length(p_steps);
  v_step jsonb;
  v_one jsonb;
  v_holder text;
  v_appends boolean := false;
  v_has_effects boolean := false;
  v_positions bigint[];
  v_before integer := 0;
  v_count integer;
  v_segment smallint;
  v_effects bigint[];
  v_effects_before integer := 0;
  v_worker text;
  v_id bigint;
  v_deleted text[];
  v_answers text := '';
begin
  if p_level < 14 then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was written.'
      using errcode = 'AC015';
  end if;
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    if v_step ?| '{done,key}' then v_holder := "aftercommit".open_step(v_step ->> 'type', v_step ->> 'id', v_step); end if;
    if v_holder is not null then
      if v_steps = 1 and not v_step ? 'strict' then return jsonb_build_object('taken_by', v_holder); end if;
      raise exception 'The unique key is taken.' using errcode = 'AC013', detail = v_holder;
    end if;
    v_appends := v_appends or v_step ? 'events';
    v_has_effects := v_has_effects or v_step ? 'effects';
    -- All of a process are in the name of one worker.
    if v_worker is null and v_step ? 'worker' then v_worker := "aftercommit".live_worker(v_step ->> 'worker'); end if;
  end loop;

  if v_appends then
    -- The events of all of them in one statement: what it checks is read, and who is to be rung looked for, only once.
    with appended as (
      insert into "aftercommit".events (id, type, aggregate_type, aggregate_id, version, tenant, payload, metadata, occurred_at, recorded_at)
      select e ->> 'id', e ->> 'type', s ->> 'type', s ->> 'id', (s ->> 'version')::bigint + n, s ->> 'tenant', e -> 'payload',
             e -> 'metadata', v_now, v_now
        from jsonb_array_elements(p_steps) as x(s), jsonb_array_elements(s -> 'events') with ordinality as y(e, n)
      returning case when ("aftercommit".may_break_limits(type, aggregate_type, aggregate_id, payload, metadata, null)
                           or "aftercommit".has_swollen(bytes, payload) or octet_length(tenant) > 255)
                       and not "aftercommit".check_event(type, aggregate_type, aggregate_id, payload, metadata,
                                                   jsonb_build_object('tenant', tenant))
                  then null else position end as position)
    select array_agg(position order by position) into v_positions from appended;
  elsif v_has_effects or jsonb_path_exists(p_steps, '$[*].timers') then
    -- Without an event nothing else makes arming readers wait for this transaction.
    perform pg_sequence_last_value('"aftercommit".positions'::regclass);
  end if;
  if v_has_effects then
    select segment into v_segment from "aftercommit".delivery_state;
    -- The effects of all of them in one statement as well: the way to the segment is found once.
    with placed as (
      insert into "aftercommit".deliveries (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                      first_attempt_at, last_attempt_at, token, worker, event_id)
      select v_segment, nextval('"aftercommit".delivery_ids'::regclass), (e ->> 'lane')::integer, s ->> 'type', s ->> 'id',
             s ? 'ordered', e -> 'payload', to_timestamp((s ->> 'at')::double precision / 1000), v_now,
             (w is not null)::integer, case when w is not null then v_now end, case when w is not null then v_now end,
             case when w is not null then (s ->> 'token')::bigint end, w, s -> 'events' -> -1 ->> 'id'
        from jsonb_array_elements(p_steps) as x(s)
       cross join lateral (select case when s ? 'worker' then v_worker end as w) c
       cross join lateral jsonb_array_elements(s -> 'effects') as y(e)
      returning id)
    select array_agg(id order by id) into v_effects from placed;
  end if;

  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    v_count := coalesce(jsonb_array_length(v_step -> 'events'), 0);
    perform "aftercommit".commit_step(v_step ->> 'type', v_step ->> 'id', (v_step ->> 'version')::bigint, v_step,
      v_positions[v_before + 1 : v_before + v_count], v_now);
    v_before := v_before + v_count;
    v_answers := v_answers || case when n > 0 then ',' else '' end || '{"position":"'
      || case when v_count = 0 then 0 else v_positions[v_before] end;
    if v_has_effects then
      v_count := coalesce(jsonb_array_length(v_step -> 'effects'), 0);
      if v_count > 0 and v_worker is not null and v_step ? 'worker' then
        v_answers := v_answers || '","claimed":["'
          || array_to_string(v_effects[v_effects_before + 1 : v_effects_before + v_count], '","') || '"]}';
      else
        v_answers := v_answers || '"}';
      end if;
      v_effects_before := v_effects_before + v_count;
    else
      v_answers := v_answers || '"}';
    end if;
  end loop;
  for n in 0 .. jsonb_array_length(p_ended) - 1 loop
    v_one := p_ended -> n;
    delete from "aftercommit".deliveries
     where segment = (v_one ->> 'segment')::smallint and id = (v_one ->> 'id')::bigint and token = (v_one ->> 'token')::bigint
    returning id into v_id;
    if found then v_deleted := v_deleted || v_id::text; end if;
  end loop;
  return '{"segment":' || coalesce(v_segment::text, 'null') || ',"deleted":' || coalesce(to_json(v_deleted)::text, '[]')
    || ',"steps":[' || v_answers || ']}';
end
$aftercommit$;
revoke all on function "aftercommit"."workflow_commit" from public;
comment on function "aftercommit"."workflow_commit" is 'Writes everything that follows from inputs, and deletes deliveries that ended: all of it, or nothing. The caller holds the locks of workflow_load. A step is {type, id, version, …}, with `events` as {id, type, payload, metadata}, `effects` as {lane, payload} and `timers` as {payload, unique_key, due}; `done` is the delivery that brought its input, as {segment, id, token} like each of p_ended: where its claim was lost, nothing is written. p_level as in append. Returns {segment, deleted: ids, steps: [{position, claimed: ids}]}: the position of the last event of each step, and its effects in `segment` that its worker has claimed already. Or {taken_by}, the instance that has the unique key; where more hangs on it than this one step, that is an error instead.';
-- grants: run
-- Loads an instance from what the caller knows on, and with p_lock locks it until the transaction ends. The answer is the
-- JSON object that load_step describes.
create or replace function "aftercommit".workflow_load(
  p_type text, p_id text, p_lock boolean, p_known bigint, p_known_position bigint, p_state_version integer,
  p_input_id text default null, p_up_to bigint default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
begin
  return "aftercommit".load_step(p_type, p_id, p_lock, p_known, p_known_position, p_state_version, p_input_id, p_up_to, true);
end
$aftercommit$;
revoke all on function "aftercommit"."workflow_load" from public;
comment on function "aftercommit"."workflow_load" is 'Loads an instance from what the caller knows on, and with p_lock locks it until the transaction ends. The answer is the JSON object that load_step describes.';
-- grants: run
-- Writes steps that a process decided on what it remembers, as workflow_commit does, where that is still so. One statement for
-- all of them, and no lock is waited for. Beside what workflow_commit takes, a step names `position` (of the last event that it
-- knows), `at` (the time it was decided for), `state_version` and `for_input` (the id of its input). `ask`: it knows nothing.
-- `again`: it was sent before and the answer got lost; the ids of its events tell whether it was written then.
-- Returns {clock_ms, refused, committed}. `committed` is the answer of workflow_commit for all steps that were not refused, in
-- their order. A refused step is {n} with its place and either `happened`, the position of its last event, or `found`: the answer
-- of workflow_load from what it knows, null where another transaction has the instance. A step is refused where the instance has
-- gone on, is over, paused or has events waiting, where its input has an outcome, or where `at` is not the time of this server.
create or replace function "aftercommit".workflow_try(p_steps jsonb, p_ended jsonb, p_level integer default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $aftercommit$
declare
  v_steps integer := jsonb_array_length(p_steps);
  v_step jsonb;
  v_type text;
  v_id text;
  v_clock bigint;
  v_known bigint;
  v_at bigint;
  v_position bigint;
  r record;
  v_fits boolean;
  v_refusal text;
  v_refused text := '';
  v_accepted jsonb;
begin
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    v_type := v_step ->> 'type';
    v_id := v_step ->> 'id';
    v_refusal := null;
    if not pg_try_advisory_xact_lock(hashtextextended(v_type || '/' || v_id, hashtextextended('aftercommit', 0))) then
      v_refusal := '"found":null';
    else
      v_clock := floor(extract(epoch from clock_timestamp()) * 1000);
      v_known := (v_step ->> 'version')::bigint;
      v_at := (v_step ->> 'at')::bigint;
      select i.version, i.last_position, i.last_event_at, i.paused or i.holds or i.completed_at is not null as stands into r
        from "aftercommit".workflow_instances i where i.type = v_type and i.id = v_id;
      v_fits := case when found
        then r.version = v_known and r.last_position = (v_step ->> 'position')::bigint and not r.stands
             and v_at >= floor(extract(epoch from r.last_event_at) * 1000)
        else v_known = 0 end
        and v_at between v_clock - 5000 and v_clock + 5000 and not v_step ? 'ask';
      if v_fits and v_step ? 'for_input' then
        v_fits := not exists (select from "aftercommit".workflow_inputs i
                               where i.type = v_type and i.id = v_id and i.input_id = v_step ->> 'for_input');
      end if;
      if v_fits is not true and v_step ? 'again' then
        -- Its last event is the only one that can have this version and this id.
        select e.position into v_position from "aftercommit".events e
         where e.aggregate_type = v_type and e.aggregate_id = v_id and e.position > (v_step ->> 'position')::bigint
           and e.version = v_known + jsonb_array_length(v_step -> 'events') and e.id = v_step -> 'events' -> -1 ->> 'id';
        if found then v_refusal := format('"happened":"%s"', v_position); end if;
      end if;
      if v_fits is not true and v_refusal is null then
        v_refusal := '"found":' || "aftercommit".load_step(v_type, v_id, true, v_known, (v_step ->> 'position')::bigint,
          (v_step ->> 'state_version')::integer, v_step ->> 'for_input', null, false);
      end if;
    end if;
    if v_refusal is not null then
      v_refused := v_refused || format('%s{"n":%s,%s}', case when v_refused <> '' then ',' end, n, v_refusal);
      -- From the first refusal on, those that are written are gathered.
      if v_accepted is null then
        v_accepted := case when n = 0 then '[]' else jsonb_path_query_array(p_steps, format('$[0 to %s]', n - 1)::jsonpath) end;
      end if;
    elsif v_accepted is not null then
      v_accepted := v_accepted || jsonb_build_array(v_step);
    end if;
  end loop;
  v_accepted := coalesce(v_accepted, p_steps);
  return format('{"refused":[%s],"committed":%s,"clock_ms":%s}', v_refused,
    case when jsonb_array_length(v_accepted) > 0 or jsonb_array_length(p_ended) > 0
         then "aftercommit".workflow_commit(v_accepted, p_ended, p_level) else 'null' end,
    floor(extract(epoch from clock_timestamp()) * 1000));
end
$aftercommit$;
revoke all on function "aftercommit"."workflow_try" from public;
comment on function "aftercommit"."workflow_try" is 'Writes steps that a process decided on what it remembers, as workflow_commit does, where that is still so. One statement for all of them, and no lock is waited for. Beside what workflow_commit takes, a step names `position` (of the last event that it knows), `at` (the time it was decided for), `state_version` and `for_input` (the id of its input). `ask`: it knows nothing. `again`: it was sent before and the answer got lost; the ids of its events tell whether it was written then. Returns {clock_ms, refused, committed}. `committed` is the answer of workflow_commit for all steps that were not refused, in their order. A refused step is {n} with its place and either `happened`, the position of its last event, or `found`: the answer of workflow_load from what it knows, null where another transaction has the instance. A step is refused where the instance has gone on, is over, paused or has events waiting, where its input has an outcome, or where `at` is not the time of this server.';
-- grants: emit
-- Makes events of the rows that a captured table has already: call backfill('orders') writes order.existing for each. Commits after
-- every batch; a call that was ended early goes on where it was, and a finished one does nothing unless again => true.
create or replace procedure "aftercommit".backfill(relation regclass, again boolean default false, batch integer default 1000)
language plpgsql as $aftercommit$
begin
  if not "aftercommit".begin_backfill(relation, again) then return; end if;
  commit;
  loop
    perform "aftercommit".make_room();
    commit;
    exit when "aftercommit".backfill_batch(relation, batch) operator(pg_catalog.=) 0;
    commit;
  end loop;
end
$aftercommit$;
revoke all on procedure "aftercommit"."backfill" from public;
comment on procedure "aftercommit"."backfill" is 'Makes events of the rows that a captured table has already: call backfill(''orders'') writes order.existing for each. Commits after every batch; a call that was ended early goes on where it was, and a finished one does nothing unless again => true.';
-- grants: emit
-- Appends the rows of a table of events that existed before, in their order: call import_events('old_events',
-- order_by => '{created_at,id}', columns => '{"type": "event_type", "payload": "data", "occurred_at": "created_at"}'). Commits after every
-- batch; a call that was ended early goes on where it was, and a later one appends rows that have come since.
create or replace procedure "aftercommit".import_events(relation regclass, order_by text[], columns jsonb, batch integer default 1000)
language plpgsql as $aftercommit$
begin
  loop
    perform "aftercommit".make_room();
    commit;
    exit when "aftercommit".import_batch(relation, order_by, columns, batch) operator(pg_catalog.=) 0;
    commit;
  end loop;
end
$aftercommit$;
revoke all on procedure "aftercommit"."import_events" from public;
comment on procedure "aftercommit"."import_events" is 'Appends the rows of a table of events that existed before, in their order: call import_events(''old_events'', order_by => ''{created_at,id}'', columns => ''{"type": "event_type", "payload": "data", "occurred_at": "created_at"}''). Commits after every batch; a call that was ended early goes on where it was, and a later one appends rows that have come since.';
-- grants: none
-- Wakes sleeping workers when a delivery is added.
create or replace trigger bell after insert on "aftercommit".deliveries for each statement execute function "aftercommit".ring();
comment on trigger "bell" on "aftercommit"."deliveries" is 'Wakes sleeping workers when a delivery is added.';
-- grants: none
-- Rings sleeping readers. Enabled always: sessions that apply replicated or bulk data with triggers off ring too.
create or replace trigger bell after insert on "aftercommit".events for each statement execute function "aftercommit".ring();
alter table "aftercommit".events enable always trigger bell;
comment on trigger "bell" on "aftercommit"."events" is 'Rings sleeping readers. Enabled always: sessions that apply replicated or bulk data with triggers off ring too.';
-- grants: none
-- Refuses TRUNCATE: readers would take the numbers of removed events for rolled back.
create or replace trigger keep_history before truncate on "aftercommit".events for each statement execute function "aftercommit".refuse_truncate();
comment on trigger "keep_history" on "aftercommit"."events" is 'Refuses TRUNCATE: readers would take the numbers of removed events for rolled back.';
-- grants: read
-- Changes of captured tables in the shape of Debezium: the row before and after, the operation (c, u, d, t, and r for existing
-- rows), where it happened, and when in milliseconds.
create or replace view "aftercommit".change_images as
  select e.position, e.id as event_id, e.aggregate_type, e.aggregate_id, e.tenant,
         case k.kind when 'updated' then e.previous when 'deleted' then e.payload end as before,
         case when k.kind in ('created', 'updated', 'existing') then e.payload end as after,
         case k.kind when 'created' then 'c' when 'updated' then 'u' when 'deleted' then 'd' when 'truncated' then 't' else 'r' end as op,
         jsonb_build_object('connector', 'aftercommit', 'db', current_database(), 'table', e.metadata ->> 'captured_from',
           'sequence', e.position, 'ts_ms', floor(extract(epoch from coalesce(e.began_at, e.recorded_at)) * 1000)::bigint) as source,
         floor(extract(epoch from e.recorded_at) * 1000)::bigint as ts_ms
    from "aftercommit".events e
   cross join lateral (select substring(e.type from '[^.]+$')) k (kind)
   where e.metadata ? 'captured_from' and k.kind in ('created', 'updated', 'deleted', 'truncated', 'existing');
comment on column "aftercommit".change_images.position is 'Place in the one order of all events.';
comment on column "aftercommit".change_images.event_id is 'The event of the change.';
comment on column "aftercommit".change_images.before is 'The row before an update or deletion.';
comment on column "aftercommit".change_images.after is 'The row after an insert or update, or as it existed.';
comment on column "aftercommit".change_images.op is 'c, u, d, t or r: created, updated, deleted, truncated, existing.';
comment on column "aftercommit".change_images.source is 'Database, table and position, and when the transaction began.';
comment on column "aftercommit".change_images.ts_ms is 'When the event was written, in milliseconds.';
comment on column "aftercommit".change_images.aggregate_type is 'Aggregate type of the captured table.';
comment on column "aftercommit".change_images.aggregate_id is 'Key of the row; null for a TRUNCATE.';
comment on column "aftercommit".change_images.tenant is 'The tenant of the event.';
comment on view "aftercommit"."change_images" is 'Changes of captured tables in the shape of Debezium: the row before and after, the operation (c, u, d, t, and r for existing rows), where it happened, and when in milliseconds.';
-- grants: read
-- Deliveries and events that ran out of attempts, with a copy of the event and the last error.
create or replace view "aftercommit".dead_letters as
  select id, kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, status, who, reason
    from "aftercommit".letters;
comment on column "aftercommit".dead_letters.id is 'Number of the dead letter, as the commands take it.';
comment on column "aftercommit".dead_letters.kind is 'Kind of what gave up: a subscription or relay, or an action, effect or timer.';
comment on column "aftercommit".dead_letters.owner is 'Name of what gave up: the subscription, the observer, or the workflow type.';
comment on column "aftercommit".dead_letters.key is 'What comes in order: later work of the same key may wait behind the letter.';
comment on column "aftercommit".dead_letters.event_id is 'The event that could not be handled, or the id of the work where it has none.';
comment on column "aftercommit".dead_letters.position is 'Position of that event in the log.';
comment on column "aftercommit".dead_letters.event is 'Copy of the event.';
comment on column "aftercommit".dead_letters.error is 'The last error.';
comment on column "aftercommit".dead_letters.attempts is 'Attempts made before it was given up.';
comment on column "aftercommit".dead_letters.status is 'dead, redriving, resolved or discarded.';
comment on column "aftercommit".dead_letters.who is 'Who changed the status by hand.';
comment on column "aftercommit".dead_letters.reason is 'Why it was changed, as that person said.';
comment on column "aftercommit".dead_letters.first_attempt_at is 'When it was tried first.';
comment on column "aftercommit".dead_letters.last_attempt_at is 'When it was tried last.';
comment on view "aftercommit"."dead_letters" is 'Deliveries and events that ran out of attempts, with a copy of the event and the last error.';
-- grants: read
-- Events of the tenant that the session names in aftercommit.tenant; none without it. The barrier keeps conditions of a query from
-- seeing rows of other tenants. It guards against mistakes of an application, not against the SQL of the role: who may write
-- SQL may also name another tenant.
create or replace view "aftercommit".tenant_events with (security_barrier) as
  select e.position, e.id, e.type, e.aggregate_type, e.aggregate_id, e.version, e.tenant, e.payload, e.changes, e.previous,
         e.metadata, e.occurred_at, e.recorded_at,
         round(extract(epoch from e.recorded_at - e.began_at) * 1000, 3) as duration_ms
    from "aftercommit".events e
   where e.tenant = nullif(current_setting('aftercommit.tenant', true), '');
comment on column "aftercommit".tenant_events.position is 'Place in the one order of all events.';
comment on column "aftercommit".tenant_events.duration_ms is 'How long the transaction had run when it wrote the event.';
comment on column "aftercommit".tenant_events.id is 'Id of the event.';
comment on column "aftercommit".tenant_events.type is 'Dotted lower-case name, like order.placed.';
comment on column "aftercommit".tenant_events.aggregate_type is 'Type of the thing that the event is about.';
comment on column "aftercommit".tenant_events.aggregate_id is 'Id of the thing that the event is about.';
comment on column "aftercommit".tenant_events.version is 'Place in its stream; null for plain events.';
comment on column "aftercommit".tenant_events.tenant is 'The tenant of the session.';
comment on column "aftercommit".tenant_events.payload is 'Content of the event.';
comment on column "aftercommit".tenant_events.changes is 'Field → {old, new}, for events that report a change.';
comment on column "aftercommit".tenant_events.previous is 'The image before the change, where it is stored.';
comment on column "aftercommit".tenant_events.metadata is 'Correlation and causation ids, user, trace and what the emitter added.';
comment on column "aftercommit".tenant_events.occurred_at is 'When it happened, as the emitter says.';
comment on column "aftercommit".tenant_events.recorded_at is 'When the row was written.';
comment on view "aftercommit"."tenant_events" is 'Events of the tenant that the session names in aftercommit.tenant; none without it. The barrier keeps conditions of a query from seeing rows of other tenants. It guards against mistakes of an application, not against the SQL of the role: who may write SQL may also name another tenant.';
-- grants: read
-- One row per observer and event it acted on: its actions, their outcome and how long they took.
create or replace view "aftercommit".observer_runs as
  select event_id, owner as observer, event_type, aggregate_type as entity, aggregate_id as entity_id, actions, status, duration_ms,
         at as created_at
    from "aftercommit".runs
   where kind = 'observer';
comment on column "aftercommit".observer_runs.event_id is 'The event that the observer acted on.';
comment on column "aftercommit".observer_runs.entity is 'Aggregate type of the event.';
comment on column "aftercommit".observer_runs.entity_id is 'Aggregate id of the event.';
comment on column "aftercommit".observer_runs.actions is 'Each action with its status, duration and error.';
comment on column "aftercommit".observer_runs.status is 'success, partial or failure.';
comment on column "aftercommit".observer_runs.duration_ms is 'How long the attempt took.';
comment on column "aftercommit".observer_runs.created_at is 'When the run was recorded.';
comment on column "aftercommit".observer_runs.observer is 'Name of the observer.';
comment on column "aftercommit".observer_runs.event_type is 'Type of the event.';
comment on view "aftercommit"."observer_runs" is 'One row per observer and event it acted on: its actions, their outcome and how long they took.';
-- grants: run
-- The processes that live, by their leases. `lockless`: the lock that proves the process alive is not held, so the process
-- is gone unless it reconnects within a second. The lock is looked up only by queries that read this column. The time is
-- that of the statement: its snapshot may be older than the last renewal, and a process must not look dead for that.
create or replace view "aftercommit".live_leases as
  select p.lease, p.process, p.lease_until,
         p.locked and not exists (
           select from pg_catalog.pg_locks l
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1
              and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
              and (l.classid::bigint << 32 | l.objid::bigint) = pg_catalog.hashtextextended(p.lock_key, 0)) as lockless
    from "aftercommit".processes p
   where p.lease_until > statement_timestamp();
comment on column "aftercommit".live_leases.lease is 'Name of the lease: owner of subscriptions, worker of claims.';
comment on column "aftercommit".live_leases.process is 'The process that has it.';
comment on column "aftercommit".live_leases.lease_until is 'When it ends unless it is renewed.';
comment on column "aftercommit".live_leases.lockless is 'The lock that proves the process alive is not held.';
comment on view "aftercommit"."live_leases" is 'The processes that live, by their leases. `lockless`: the lock that proves the process alive is not held, so the process is gone unless it reconnects within a second. The lock is looked up only by queries that read this column. The time is that of the statement: its snapshot may be older than the last renewal, and a process must not look dead for that.';
-- grants: read
-- Where each subscription stands, one row per partition.
create or replace view "aftercommit".checkpoints as
  select p.id as subscription_id, p.partition, p.position, p.last_event_id, p.updated_at,
         (select l.process from "aftercommit".live_leases l where l.lease = p.owner) as owner
    from "aftercommit".subscription_partitions p;
comment on column "aftercommit".checkpoints.subscription_id is 'Name of the subscription.';
comment on column "aftercommit".checkpoints.partition is 'Number of the partition; 0 where the subscription has one.';
comment on column "aftercommit".checkpoints.position is 'Every event at or below this position is done, parked or a dead letter.';
comment on column "aftercommit".checkpoints.last_event_id is 'The event at that position.';
comment on column "aftercommit".checkpoints.updated_at is 'When the checkpoint was last written.';
comment on column "aftercommit".checkpoints.owner is 'The process that runs it; null for none.';
comment on view "aftercommit"."checkpoints" is 'Where each subscription stands, one row per partition.';
-- grants: read
-- Events that a relay has published, with the time of their batch.
create or replace view "aftercommit".outbox as
  select e.id as event_id, b.relay, b.published_at
    from "aftercommit".relay_batches b
    join "aftercommit".events e on e.position between b.first_position and b.last_position and b.positions @> e.position;
comment on column "aftercommit".outbox.event_id is 'The event that was published.';
comment on column "aftercommit".outbox.relay is 'Name of the relay.';
comment on column "aftercommit".outbox.published_at is 'When its batch was acknowledged.';
comment on view "aftercommit"."outbox" is 'Events that a relay has published, with the time of their batch.';
-- grants: read
-- Events that an idempotent handler has processed, by subscription.
create or replace view "aftercommit".processed_events as
  select event_id, subscription_id, processed_at
    from "aftercommit".processed;
comment on column "aftercommit".processed_events.event_id is 'The event that was processed.';
comment on column "aftercommit".processed_events.subscription_id is 'Name of the subscription.';
comment on column "aftercommit".processed_events.processed_at is 'When the transaction of the handler recorded it.';
comment on view "aftercommit"."processed_events" is 'Events that an idempotent handler has processed, by subscription.';
-- grants: none
-- Records which server and database the history begins on.
update "aftercommit".log_state set identity = "aftercommit".log_identity() where identity = '';
-- grants: none
-- Makes the partitions for the run records of the coming days. Upkeep goes on from here with the configured retention.
select "aftercommit".keep_run_days(interval '100 years');
insert into "aftercommit".sql_files as f (name, kind, object, on_table, hash, version)
values ('capture/advance_import', 'function', 'advance_import', null, 'e631fc1ec0e84d25fa46821f08b76aca963c759a63b45eae80a82844c3a93b0c', 1),
       ('capture/register_capture', 'function', 'register_capture', null, '04a4bada200daafe3595e1d3868c5a9d014e83752aff323d86b98e6bc34486c0', 1),
       ('capture/capture_tree', 'function', 'capture_tree', null, '771772d78daeda5a432d571c155b74dc2d153ae98a8d6a4cab6e83abf42c004c', 1),
       ('capture/capture_key_columns', 'function', 'capture_key_columns', null, '05390a06e3b7ec440a629f30ad41ffa5ec94ad1fba3fbc41aa687693045f045d', 1),
       ('capture/capture_triggers', 'function', 'capture_triggers', null, 'c2bd4e482e678b68cd5c37d7e4e955026a48c1b8c5ae45c113ba2f7ca4fe51ed', 1),
       ('capture/apply_capture', 'function', 'apply_capture', null, '8be873a363c9e2a8850363260503c756d09f3a656298a3df00d5822e83db60f8', 1),
       ('capture/backfill_state', 'function', 'backfill_state', null, 'a4a05843595ec82693aa82d0651cc6e7c0c1831693e688919a93a6ed0f34832b', 1),
       ('capture/capture_image', 'function', 'capture_image', null, '5b244839814f1620ba516f715b1ce2405850faab37083ee9dc63644d935c4894', 1),
       ('capture/captured', 'function', 'captured', null, 'e4caa492ed2232e2303bf33d5c69dfb04ba2b1ee00596fd6b153a426e1c8d98a', 1),
       ('capture/capture_short', 'function', 'capture_short', null, 'f80bf7d138ce6b3c66a4c2d33f5fe8c14a3dadc2517133bd94a008abdd3df344', 1),
       ('capture/capture_context', 'function', 'capture_context', null, 'bdc628dbf95d8f5dfa1d0254b603759ea6f806b86d2d13b6260c57105aeae59b', 1),
       ('log/new_id', 'function', 'new_id', null, '747972414d040b688c68dffa106f413b1b8bf0594c866c50a11503a734e2ab90', 1),
       ('capture/capture_uncommon_key', 'function', 'capture_uncommon_key', null, 'c63a47493f2a80d6f80c322106ec4abaeab047a448467b8712e3696754c63ac0', 1),
       ('capture/capture_key', 'function', 'capture_key', null, '9d1333c232ac3c32b8ae73c357471bf56b010736e6fafee248ca9aa3c41714d1', 1),
       ('capture/capture_is_large', 'function', 'capture_is_large', null, '050ca85586eff6a6066d2020fc1edf85d32fb3b4d6e34027ee795e130779e0c9', 1),
       ('capture/capture_oversized', 'function', 'capture_oversized', null, '0d464025051b43c6016f2e4f8a22250e224fff5a56c46309fe4b46fdfcfc874d', 1),
       ('capture/write_existing', 'function', 'write_existing', null, '5d76aa138bc4cc0d01b64bb94c86971f505c0fe6e53a0c8259105ce87554fdcc', 1),
       ('capture/backfill_batch', 'function', 'backfill_batch', null, '641e93cec6a2f5ba7f3a986477509d2611c4a22975ad6cb6f9b72193f3ba230b', 1),
       ('capture/begin_backfill', 'function', 'begin_backfill', null, '0c7569ec06830d13791e689a8e4f7d6df6f2356f02f96c22cf4a0dbf046b7086', 1),
       ('capture/capture_default_type', 'function', 'capture_default_type', null, 'e8e5fdbec1db83f23302787c6a1f5133e5410bea0ae505f201975bede30b3f6d', 1),
       ('capture/capture', 'function', 'capture', null, '3f52e348d6ec5e9df9a62712e3855c8c0e664980c5e1151da93218985f191bee', 1),
       ('capture/capture_names', 'function', 'capture_names', null, '195e9b406cb3d85db84ee61bc596aaa9cdbeec157964283f6f9b954e72399e3b', 1),
       ('capture/capture_one', 'function', 'capture_one', null, '21dff43ead266c36335af424ccf742ff1a2737ee0a4f225c611c1acc35542351', 1),
       ('capture/capture_row', 'function', 'capture_row', null, '98c2b5c2d54b2c24c374fd7a3992f54d73ac14a44b9d4b4136532986d75f4d13', 1),
       ('capture/capture_rows', 'function', 'capture_rows', null, '219bcc4e8b1e4942715e84979137d56ecfd7eec410fa0dbedb74fd64d29ec11b', 1),
       ('capture/capture_truncate', 'function', 'capture_truncate', null, '8ed1708b02d6bf56b69b7f37b2cddebb7acefe51741f5a3afb9cd5476b0a1a15', 1),
       ('capture/capture_value', 'function', 'capture_value', null, '0f33ec9751742e35d61bc97cdf06adc0574be264924f466ceaa63272065bba9b', 1),
       ('capture/import_state', 'function', 'import_state', null, 'ebec69474e19f4a321bebd922f81639aa8d8afc067455374a1186aba474e322a', 1),
       ('log/has_session', 'function', 'has_session', null, 'eea298bc6e14665ed8277280dcc7f4c37a4de06b7a9e3a3a34856e38c1957c40', 1),
       ('log/session_metadata', 'function', 'session_metadata', null, 'b5ee849c8e00a5b2a1a6e84769dd971be2fdc755d90d978eb7cdf18bb50b0728', 1),
       ('log/may_break_limits', 'function', 'may_break_limits', null, 'dc23804906b42eb70342bf952b6ef0a48c0e2a971e0a1ffcf3a4dabcfb19976d', 1),
       ('log/check_event', 'function', 'check_event', null, '7873f975fe50bc1ab9aa18b9c437a5d04bf7418581d7fe4f3ed281ba91507242', 1),
       ('log/has_swollen', 'function', 'has_swollen', null, '413a2e6afa802f690badf437a45638065cfe321e0b5df162de12d6c337ebbbfe', 1),
       ('log/content_of', 'function', 'content_of', null, '5222422236d196f679f523837641d35f7d8465ae1859ad0fb5ce13487e3912db', 1),
       ('log/place_of_id', 'function', 'place_of_id', null, '9db09c3c2a7c7694a0a03b4e9edacb9da8bb8548b798ec4f65ffe3afd133f0d6', 1),
       ('log/next_version', 'function', 'next_version', null, 'e6ed26ba5d5e54c1cd9d5d0dcfb1b251a824cb012ac0be3a7a31ab73afa0197f', 1),
       ('log/append', 'function', 'append', null, 'fea38b68b2252abcab9ea12f78e69e01ca0ce5c785fe48a2d13ea5fb9ad3efcb', 1),
       ('log/append_many', 'function', 'append_many', null, 'cae997ac16b3444d36bb56226397d9d488a798f420c5bad7e89b3a2510afbd86', 1),
       ('capture/import_batch', 'function', 'import_batch', null, 'a47af08a19036b2d5ea102edee7f0987e7a230d2901150bae1f80828b8d52c8a', 1),
       ('log/split_partitions', 'function', 'split_partitions', null, '780005ff911510df3817d28ebf48c0028c880b79b994651112b276390374d599', 1),
       ('capture/make_room', 'function', 'make_room', null, '406d3a5dfa555143ad11febad525aefc9262deacb7c296983a857efe7b3dc9f0', 1),
       ('capture/unregister_capture', 'function', 'unregister_capture', null, '5dc6f4b8e38403fe4410f8f94b1e5c4ddf5f91f08de6f4a38d8a5e7d9fcb47ea', 1),
       ('capture/uncapture', 'function', 'uncapture', null, 'fb3d54317be6e523fb882127b7892f12cdc77aef286c0d92f449462eb06e7fad', 1),
       ('delivery/add_deliveries', 'function', 'add_deliveries', null, 'eda6e5b750e26552dd954f1d5451347a2dbdb1f579dfab63e5a9160c90e914b2', 1),
       ('delivery/busy_lanes', 'function', 'busy_lanes', null, '3c04c9e95a95684b6d9c71bc6de2e00a69bbdca78aa9dae2d495a3796c350ad3', 1),
       ('delivery/grant_deliveries', 'function', 'grant_deliveries', null, '67a0d5b977ea8242974bd02841142e308174c5b0d76bfbd5516deb6d103231e0', 1),
       ('delivery/due_lanes', 'function', 'due_lanes', null, '90a0fee5c9a8660cb6a2c3552f89a1ec88906c484774ef30b084f1ede3793120', 1),
       ('delivery/first_in_turn', 'function', 'first_in_turn', null, '9540219e0653c58c9d38457048ac1e59395dba46ea9685987794af7182b2fbb3', 1),
       ('delivery/claim_deliveries', 'function', 'claim_deliveries', null, '5fcc7cd936ff3b27662c2d2a6bd6a56e658f5bf0fae680ba90e66b444e16bf12', 1),
       ('delivery/delivery_lane', 'function', 'delivery_lane', null, 'd1eef430ea897088e338c6c3e18dcd709d0e5998b443ea362f4cd150c582d734', 1),
       ('delivery/delivery_lane_numbers', 'function', 'delivery_lane_numbers', null, '4c81e3644a51ef285b026ba8168e72cc3dd5453bd12ae4e777f34ade77dbf9d8', 1),
       ('delivery/has_due_deliveries', 'function', 'has_due_deliveries', null, '2c4e883d3660bcb0f0916fcda5ef70382d2fcc2a0762263bd468645f338b3a58', 1),
       ('delivery/next_delivery_ms', 'function', 'next_delivery_ms', null, '59fc960bf4cdb958ac93f0c6d501f23212d38881d7c13210b39e766201e34121', 1),
       ('delivery/rotate_deliveries', 'function', 'rotate_deliveries', null, '33dd4711704710f957e20e5fc0a1819210dd485673894b06cd601a7cc6c05be2', 1),
       ('delivery/surplus_room', 'function', 'surplus_room', null, '59dcb0c9fe57e9d730d701ba952541afead4014d0acdc1fdeb6684f43c7e7bcd', 1),
       ('log/append_own', 'function', 'append_own', null, 'cb4c81778489e45a1c783a33df4ab31fac22b2f79aa46e327256aa31cdf74265', 1),
       ('log/log_identity', 'function', 'log_identity', null, '5a103ba1d69f974c953683c99b1c74b1205d852c5e3657b3ba21ccc856847f86', 1),
       ('log/witness_is_gone', 'function', 'witness_is_gone', null, '59c24d5ae211a728e2312346432f131965c75b04f786e853ec07dbeb3f8f01af', 1),
       ('log/unbroken_from', 'function', 'unbroken_from', null, 'd0a22e4c8b0b373028d886b0e8215ea1814de6bfc8802ce9a7e4892b34ca867a', 1),
       ('log/first_late', 'function', 'first_late', null, 'b3bc8f4b03c80b634a9489f6d83da07b17be8850b131d829cf56399c5fbc4f7e', 1),
       ('log/check_log', 'function', 'check_log', null, '8b5d31b7dabfd5ba40501d3a1582667cff0b8567f399eace6c3003cc92825324', 1),
       ('log/declare_stream', 'function', 'declare_stream', null, '12559c9c9481b7f42a0892ea6684ac469bf37cb305509a01af84a07dd2f6528f', 1),
       ('log/emit', 'function', 'emit', null, 'd6d4f62464c04156fbfbd2d79ad9ca04ae075db6af895b3cb57281a9832f072f', 1),
       ('log/invalidate', 'function', 'invalidate', null, '320a6687032d42a9c1eaee5169e2b00af98bef73600ab98648bb1a144b4527c0', 1),
       ('log/lock_ids', 'function', 'lock_ids', null, 'b55e3adc71fecc31d700a137616ba2bfae9c22af699db629b09dd090d17a554f', 1),
       ('log/publish_frontier', 'function', 'publish_frontier', null, '1921716caa81c5cc24f1e9fa6d76937a66cce0fc805454c1c8a1357740c613cc', 1),
       ('log/refuse_truncate', 'function', 'refuse_truncate', null, 'f78cd69ac44152d518c253ce3a0b91ee14dd9dbd013722896dc474c9b4594902', 1),
       ('log/ring', 'function', 'ring', null, 'a8b6bfcc3635ac2651d26205c20a88698f9087fc20a7b6f26ea3e6a63b112495', 1),
       ('observers/keep_run_days', 'function', 'keep_run_days', null, '64fc46acbb18c495a58b62f8dfdf16ec5483e1c06c8b0910e76b003b7aecb447', 1),
       ('observers/raise_alert', 'function', 'raise_alert', null, '403d1d517e0192724788aa99bc1ec36cdb69960322522237ecc6e6d7bed7b5fc', 1),
       ('subscriptions/save_checkpoint', 'function', 'save_checkpoint', null, 'bbc64258292e2ffee63b0550a56b35a5a59c79497022e72da86af3ef981b5950', 1),
       ('workflows/commit_step', 'function', 'commit_step', null, 'b4147cf991bf9027c0de034039a18d488b670abf999feb1703a945c9eb79a63f', 1),
       ('workflows/holds_events', 'function', 'holds_events', null, 'db22c726dc5c61f5a0939e74e29b20dd50a72e82cd7d3859fa8bc7ae168e4214', 1),
       ('workflows/live_worker', 'function', 'live_worker', null, '8454ca25f932435721149b94cefc92e6c5766a4810098033972fcb90bb9d17ea', 1),
       ('workflows/workflow_events', 'function', 'workflow_events', null, 'cc001d486df3f92a659d1db1314f2372068c30f26f84fc591ec087fc7196d8ff', 1),
       ('workflows/load_step', 'function', 'load_step', null, '00f0e35b118837cc754c1e5ae391c33c5531c57da868627f3ec4a8ba3ba41dce', 1),
       ('workflows/open_step', 'function', 'open_step', null, 'b430bb76c2b13932911c973ed588d8a2ef2130e13a7b27a19681b71081dd0703', 1),
       ('workflows/workflow_commit', 'function', 'workflow_commit', null, '4814b2a489f17c69a10b059d65a8d18e07917c012b1d064be0e045f587fca238', 1),
       ('workflows/workflow_load', 'function', 'workflow_load', null, 'faa5fa5cb2d7312d85275505696e659658fb0ae76ccac13ab8199c59a139c54e', 1),
       ('workflows/workflow_try', 'function', 'workflow_try', null, '5982cf440c9f0968052597e6849b71013d38e2db7e8a2e7f796a38b61ed662a5', 1),
       ('capture/backfill', 'procedure', 'backfill', null, 'b83dd15cde2d819f948261bc53c7c7d743ad8dc2a5565020c2930970b09d60e9', 1),
       ('capture/import_events', 'procedure', 'import_events', null, '221a078d047eeca461446f81ac886251772e04a680519c3bd92acf90360ea5b0', 1),
       ('delivery/delivery_bell', 'trigger', 'bell', 'deliveries', 'aa7e9108da8c1cb9f955541f8ef4c87158198d8888a6b011790aee997eed4595', 1),
       ('log/bell', 'trigger', 'bell', 'events', '290f1647d5d461ceac31de6b3a72e35a95e4da2e3b9386ac0e23d5b9ddc01c55', 1),
       ('log/keep_history', 'trigger', 'keep_history', 'events', 'eb200038d7c3cfdf217814d5788bf4e6f3a1e377b48fbd4f21514c5408a946be', 1),
       ('capture/change_images', 'view', 'change_images', null, '3092f34c2941dd369473457a75237b220255fec4bc0dc63001b74ae775fbfee8', 1),
       ('dead-letters/dead_letters', 'view', 'dead_letters', null, '9ce14c9fad9334bd0f7b57d5cf6c94cc27b70a210188037a132e0c325dd247e6', 1),
       ('log/tenant_events', 'view', 'tenant_events', null, '26a260548654cd0de5a74ebfa25eeb18835ec315e4a8ec51439272ee697f47a2', 1),
       ('observers/observer_runs', 'view', 'observer_runs', null, '42c3d8c94e7491aa97618626249294849b04878950dabd9a44acfd4e9573c959', 1),
       ('processes/live_leases', 'view', 'live_leases', null, 'f1337701ad4bc19ce40c5efd5e99416d7dbb6ee5293cffc502368df4dedcdead', 1),
       ('subscriptions/checkpoints', 'view', 'checkpoints', null, 'e91660fff1aad61f2889ddc2b71abb9a1bfd1fedb8d65854fc4bd3d6b698c234', 1),
       ('subscriptions/outbox', 'view', 'outbox', null, 'ed31b76976b6f8658a07ca7e7f11a091ebac6e9af0f52c3ecec816923756cc0e', 1),
       ('subscriptions/processed_events', 'view', 'processed_events', null, '6e15a287b020a5f1bd92bb4168df4ac99e1c13e22532e307fbe54e56b55adf7e', 1),
       ('log/first_identity', 'data', null, null, '3c0f2205c9a079902042facc2fe29e12a7d672d48cc8fc71b2ee0d5fb24c5c6c', 1),
       ('observers/first_days', 'data', null, null, '05800b0cff6f9fc0dc5f89d00d8275239ed789a2a614f666fcf47db16e865330', 1)
on conflict (name) do update
   set kind = excluded.kind, object = excluded.object, on_table = excluded.on_table, hash = excluded.hash,
       version = excluded.version,
       applied_at = case when f.hash = excluded.hash then f.applied_at else pg_catalog.clock_timestamp() end;
commit;
