-- grants: read
-- Events that an idempotent handler has processed, by subscription.
create or replace view :schema.processed_events as
  select event_id, subscription_id, processed_at
    from :schema.processed;
