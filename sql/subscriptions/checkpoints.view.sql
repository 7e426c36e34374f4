-- grants: read
-- What SQL users may rely on.
create or replace view :schema.checkpoints as
  select id as subscription_id, partition, position, last_event_id, updated_at, owner
    from :schema.subscription_partitions;
