-- why: when observers and their actions began, what they were then, what they did, and when they last raised an alarm.
-- locks: none that anybody waits for; every object here is new.
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

-- Makes the days to come and drops those whose time is over. Returns what was done.
create function :schema.keep_run_days(p_keep interval) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $aftercommit$
declare
  v_day date;
  v_name text;
  v_done text[] := '{}';
begin
  for v_day in select generate_series((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3, interval '1 day')::date loop
    v_name := 'runs_' || to_char(v_day, 'YYYYMMDD');
    continue when to_regclass(format('%I.%I', :schema_literal, v_name)) is not null;
    begin
      execute format('create table %1$I.%2$I partition of %1$I.runs for values from (%3$L) to (%4$L)', :schema_literal, v_name,
        v_day::text || ' 00:00:00+00', (v_day + 1)::text || ' 00:00:00+00');
      v_done := v_done || format('made %s', v_name);
    exception
      -- Somebody else made it, or records of that day went elsewhere already: they are fine there.
      when duplicate_table or check_violation or lock_not_available then null;
    end;
  end loop;
  for v_name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = format('%I.runs', :schema_literal)::regclass
       and c.relname ~ '^runs_\d{8}$'
       and to_date(substr(c.relname, 6), 'YYYYMMDD') < (now() at time zone 'UTC' - p_keep)::date
  loop
    begin
      execute format('drop table %I.%I', :schema_literal, v_name);
      v_done := v_done || format('dropped %s', v_name);
    exception when lock_not_available then null;
    end;
  end loop;
  delete from :schema.runs_other where at < now() - p_keep;
  return v_done;
end
$aftercommit$;
select :schema.keep_run_days(interval '7 days');

create view :schema.observer_runs as
  select event_id, observer, event_type, aggregate_type as entity, aggregate_id as entity_id, actions, status, duration_ms,
         at as created_at
    from :schema.runs;

revoke all on all functions in schema :schema from public;
