-- why: workflows: their instances, snapshots, unique keys, inputs and schedules. Their histories are in the log.
-- locks: none; every object here is new.
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
comment on table :schema.workflow_instances is 'Workflow instances and their state of progress. Their histories are events of the log.';
create index workflow_instances_recent on :schema.workflow_instances (type, last_position);

-- A table of its own: the second instance learns from the row which one was first, and no statement fails.
create table :schema.workflow_keys (
  type text not null,
  unique_key text not null,
  id text not null,
  primary key (type, unique_key)
);
comment on table :schema.workflow_keys is 'The instance that has a unique key.';

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
comment on table :schema.workflow_snapshots is
  'States of instances at a version. A row without a state marks the beginning of a new life, and stays.';

create table :schema.workflow_inputs (
  type text not null,
  id text not null,
  input_id text not null,
  outcome jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (type, id, input_id)
);
comment on table :schema.workflow_inputs is 'Outcomes of inputs that carry an id: a repeated input gets the first outcome.';
create index workflow_inputs_age on :schema.workflow_inputs using brin (at);

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
comment on table :schema.input_observations is 'Inputs and their outcomes, of workflows with `observe`.';
create index input_observations_instance on :schema.input_observations (type, id, number);
create index input_observations_age on :schema.input_observations using brin (at);

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
comment on table :schema.schedules is 'Recurring work. The next time of each is a delivery, unique by the id.';
