-- grants: read
-- Events that a relay has published, with the time of their batch.
create or replace view :schema.outbox as
  select e.id as event_id, b.relay, b.published_at
    from :schema.relay_batches b
    join :schema.events e on e.position between b.first_position and b.last_position and b.positions @> e.position;
comment on column :schema.outbox.event_id is 'The event that was published.';
comment on column :schema.outbox.relay is 'Name of the relay.';
comment on column :schema.outbox.published_at is 'When its batch was acknowledged.';
