-- grants: read
-- Events that an idempotent handler has processed, by subscription.
create or replace view :schema.processed_events as
  select event_id, subscription_id, processed_at
    from :schema.processed;
comment on column :schema.processed_events.event_id is 'The event that was processed.';
comment on column :schema.processed_events.subscription_id is 'Name of the subscription.';
comment on column :schema.processed_events.processed_at is 'When the transaction of the handler recorded it.';
