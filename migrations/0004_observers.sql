-- why: when observers and their actions began, what they were then, what they did, and when they last raised an alarm.
-- locks: none; every object here is new.
-- older: keep

create table :schema.observer_actions (
  observer text not null,
  action text not null,
  start_position bigint not null,
  added_at timestamptz not null default clock_timestamp(),
  primary key (observer, action)
);
comment on table :schema.observer_actions is
  'Where each action begins: it sees events after this position, the head when it was first registered.';

create table :schema.observer_versions (
  observer text not null,
  version integer not null,
  from_position bigint not null,
  hash text not null,
  -- Null: it was removed or switched off from this position on.
  definition jsonb,
  at timestamptz not null default clock_timestamp(),
  primary key (observer, version)
);
comment on table :schema.observer_versions is
  'Definitions of observers over time, to explain old events by the rule that was in force. Secrets are references here.';

create table :schema.observer_alerts (
  observer text primary key,
  sent_at timestamptz,
  count bigint not null default 0
) with (fillfactor = 50);
comment on table :schema.observer_alerts is 'The last alert of each observer, and how many failures came since.';

-- Append-only, partitioned by day: upkeep drops whole days.
create table :schema.runs (
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
comment on table :schema.runs is 'Run records: the attempts of observers, effects and timers, and how they ended. Read them through observer_runs.';
comment on column :schema.runs.kind is 'observer, effect or timer.';
comment on column :schema.runs.owner is 'The observer, or the workflow type of an effect or timer.';
comment on column :schema.runs.name is 'The effect, or the key of the timer; null for an observer, which has a list of actions.';
create index runs_event on :schema.runs (event_id);
create index runs_owner on :schema.runs (owner, at desc);
create index runs_problems on :schema.runs (at desc) where status <> 'success';
-- For days without a partition: a record is never refused.
create table :schema.runs_other partition of :schema.runs default;
