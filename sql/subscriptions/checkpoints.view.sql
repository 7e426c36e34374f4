-- grants: read
-- Where each subscription stands, one row per partition.
create or replace view :schema.checkpoints as
  select id as subscription_id, partition, position, last_event_id, updated_at, owner
    from :schema.subscription_partitions;
comment on column :schema.checkpoints.subscription_id is 'Name of the subscription.';
comment on column :schema.checkpoints.partition is 'Number of the partition; 0 where the subscription has one.';
comment on column :schema.checkpoints.position is 'Every event at or below this position is done, parked or a dead letter.';
comment on column :schema.checkpoints.last_event_id is 'The event at that position.';
comment on column :schema.checkpoints.updated_at is 'When the checkpoint was last written.';
comment on column :schema.checkpoints.owner is 'The process that holds the lease; null for none.';
