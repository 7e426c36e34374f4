-- grants: read
-- One row per observer and event it acted on: its actions, their outcome and how long they took.
create or replace view :schema.observer_runs as
  select event_id, owner as observer, event_type, aggregate_type as entity, aggregate_id as entity_id, actions, status, duration_ms,
         at as created_at
    from :schema.runs
   where kind = 'observer';
