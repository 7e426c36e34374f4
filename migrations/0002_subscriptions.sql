-- why: named readers with their checkpoints and leases, dead letters, parked events, processed keys, projections, relays.
-- locks: none; every object here is new.
-- older: keep

create table :schema.subscriptions (
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
comment on table :schema.subscriptions is 'Named readers of the log: subscriptions, projections, relays, and the readers of observers and workflows.';

create table :schema.subscription_partitions (
  id text not null references :schema.subscriptions on delete cascade,
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
comment on table :schema.subscription_partitions is 'The checkpoint and the lease of each partition of a subscription. Every write names the term of its owner.';
comment on column :schema.subscription_partitions.save is 'Number of the last write of the owner: a repeated write with this number has succeeded already.';
comment on column :schema.subscription_partitions.settled is
  'Of events that are not finished: position → owners of actions whose row or dead letter is written. They are not attempted again.';
comment on column :schema.subscription_partitions.deaths is 'Owners that died in a row while the position stayed the same.';

create table :schema.letters (
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
comment on table :schema.letters is 'Dead letters: events and deliveries that ran out of attempts. The event is a copy, and outlives its partition.';
create index letters_open on :schema.letters (kind, owner, key) include (status, parks)
  where status in ('dead', 'redriving') or parks;
create index letters_streak on :schema.letters (kind, owner) where streak;
-- An owner looks every few seconds; there is almost never a row.
create index letters_marked on :schema.letters (kind, owner, position)
  where status = 'redriving' or (parks and status in ('discarded', 'resolved'));
create index letters_recent on :schema.letters (changed_at desc, id desc);
create index letters_to_place on :schema.letters (position) where status = 'redriving' and delivery is not null and placed is null;
-- For retention.
create index letters_settled on :schema.letters (changed_at) where status in ('resolved', 'discarded') and not parks;

create table :schema.parked (
  owner text not null,
  position bigint not null,
  key text not null,
  event jsonb not null,
  parked_at timestamptz not null default clock_timestamp(),
  primary key (owner, position)
);
comment on table :schema.parked is 'Copies of events that wait behind a dead letter of their key, in order.';
create index parked_key on :schema.parked (owner, key, position);

create table :schema.processed (
  subscription_id text not null,
  event_id text not null,
  position bigint,
  processed_at timestamptz not null default clock_timestamp(),
  primary key (subscription_id, event_id)
);
comment on table :schema.processed is 'Events that an idempotent handler has processed, by subscription.';
create index processed_age on :schema.processed (processed_at);

create table :schema.checkpoint_marks (
  subscription_id text not null references :schema.subscriptions on delete cascade,
  at timestamptz not null default clock_timestamp(),
  position bigint not null,
  primary key (subscription_id, at)
);
comment on table :schema.checkpoint_marks is 'Where a checkpoint stood at a time. The retention of processed keys counts from when their event was passed.';

create table :schema.projection_states (
  projection text not null references :schema.subscriptions on delete cascade,
  id text not null,
  state jsonb not null,
  position bigint not null,
  primary key (projection, id)
);
comment on table :schema.projection_states is 'States of projections that are kept by aftercommit, by id.';

create table :schema.relay_batches (
  relay text not null references :schema.subscriptions on delete cascade,
  first_position bigint not null,
  last_position bigint not null,
  -- Exactly what was published: the range also holds what the filter passed over and what was parked.
  positions int8multirange not null,
  events bigint not null,
  published_at timestamptz not null default clock_timestamp(),
  primary key (relay, last_position)
);
comment on table :schema.relay_batches is 'Batches that a relay has published.';
create index relay_batches_age on :schema.relay_batches (relay, published_at);

create table :schema.frontier_marks (
  at timestamptz primary key default clock_timestamp(),
  frontier bigint not null
);
comment on table :schema.frontier_marks is
  'Where the frontier stood at a time. An event at or below a mark that was recorded later was written by hand.';
