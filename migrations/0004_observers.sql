-- why: when observers and their actions began, what they were then, what they did, and when they last raised an alarm.
-- locks: none; every object here is new.
-- older: keep

-- An action sees events after its start: the head when it was first registered.
create table :schema.observer_actions (
  observer text not null,
  action text not null,
  start_position bigint not null,
  added_at timestamptz not null default clock_timestamp(),
  primary key (observer, action)
);

-- What an observer was, so that "why not" can be answered with the rule that was in force. Secrets are references here.
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

-- At most one alert per observer and time; the count is what it stands for.
create table :schema.observer_alerts (
  observer text primary key,
  sent_at timestamptz,
  count bigint not null default 0
) with (fillfactor = 50);

-- What was done for which event. Append-only, by day: a day goes whole when its time has come.
create table :schema.runs (
  at timestamptz not null default clock_timestamp(),
  event_id text not null,
  position bigint not null,
  observer text not null,
  event_type text not null,
  aggregate_type text,
  aggregate_id text,
  tenant text,
  trace_id text,
  -- 1 for what was done from the log; later attempts have records of their own.
  attempt integer not null default 1,
  actions jsonb not null,
  status text not null,
  duration_ms double precision not null
) partition by range (at);
create index runs_event on :schema.runs (event_id);
create index runs_observer on :schema.runs (observer, at desc);
create index runs_problems on :schema.runs (at desc) where status <> 'success';
-- Whatever no day was made for: a record is never refused.
create table :schema.runs_other partition of :schema.runs default;
