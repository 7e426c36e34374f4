-- grants: read
-- Where each subscription stands, one row per partition.
create or replace view :schema.checkpoints as
  select p.id as subscription_id, p.partition, p.position, p.last_event_id, p.updated_at,
         (select l.process from :schema.live_leases l where l.lease = p.owner) as owner
    from :schema.subscription_partitions p;
comment on column :schema.checkpoints.subscription_id is 'Name of the subscription.';
comment on column :schema.checkpoints.partition is 'Number of the partition; 0 where the subscription has one.';
comment on column :schema.checkpoints.position is 'Every event at or below this position is done, parked or a dead letter.';
comment on column :schema.checkpoints.last_event_id is 'The event at that position.';
comment on column :schema.checkpoints.updated_at is 'When the checkpoint was last written.';
comment on column :schema.checkpoints.owner is 'The process that runs it; null for none.';
