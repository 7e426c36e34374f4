-- why: receipts say which filter a subscription had at an event and find dead letters and deliveries by their event.
-- locks: deliveries, dead letters and audit against writes while their indexes are built; they hold what waits, not history.
-- older: keep

-- Written by the statement that registers a subscription.
create table :schema.subscription_versions (
  id text not null references :schema.subscriptions on delete cascade,
  generation bigint not null,
  definition jsonb not null,
  -- Events above this position were judged by it. Null: it was registered before versions were kept.
  from_position bigint,
  at timestamptz not null default clock_timestamp(),
  primary key (id, generation)
);
comment on table :schema.subscription_versions is
  'Filters of subscriptions over time, to explain old events by the filter that was registered when they were read.';
insert into :schema.subscription_versions (id, generation, definition, at)
select id, generation, definition, updated_at from :schema.subscriptions;

create index letters_event on :schema.letters (event_id);
-- Dead letters of effects and timers are found by the event of their workflow.
create index letters_asked on :schema.letters ((delivery ->> 'event_id')) where delivery is not null;
-- Lists, counts and causes of what waits for an operator.
create index letters_dead on :schema.letters (id) where status = 'dead';
create index deliveries_event on :schema.deliveries (event_id) where event_id is not null;
create index audit_seeks on :schema.audit (target, at) where what in ('subscription.seek', 'subscription.fast-forward');
