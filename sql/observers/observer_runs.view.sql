-- grants: read
-- One row per observer and event it acted on: its actions, their outcome and how long they took.
create or replace view :schema.observer_runs as
  select event_id, owner as observer, event_type, aggregate_type as entity, aggregate_id as entity_id, actions, status, duration_ms,
         at as created_at
    from :schema.runs
   where kind = 'observer';
comment on column :schema.observer_runs.event_id is 'The event that the observer acted on.';
comment on column :schema.observer_runs.entity is 'Aggregate type of the event.';
comment on column :schema.observer_runs.entity_id is 'Aggregate id of the event.';
comment on column :schema.observer_runs.actions is 'Each action with its status, duration and error.';
comment on column :schema.observer_runs.status is 'success, partial or failure.';
comment on column :schema.observer_runs.duration_ms is 'How long the attempt took.';
comment on column :schema.observer_runs.created_at is 'When the run was recorded.';
comment on column :schema.observer_runs.observer is 'Name of the observer.';
comment on column :schema.observer_runs.event_type is 'Type of the event.';
