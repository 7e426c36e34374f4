-- why: how long a transaction had run when it wrote an event, without a value that every append would have to compute.
-- locks: events, for a moment; no row is rewritten.
-- older: keep

alter table :schema.events add column began_at timestamptz;
alter table :schema.events alter column began_at set default now();
comment on column :schema.events.began_at is 'When the transaction began that wrote the event: recorded_at - began_at is how long it had run. Null for events from before there was this column.';
