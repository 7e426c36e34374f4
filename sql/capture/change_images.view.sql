-- grants: read
-- Changes of captured tables in the shape of Debezium: the row before and after, the operation (c, u, d, t, and r for existing
-- rows), where it happened, and when in milliseconds.
create or replace view :schema.change_images as
  select e.position, e.id as event_id, e.aggregate_type, e.aggregate_id, e.tenant,
         case k.kind when 'updated' then e.previous when 'deleted' then e.payload end as before,
         case when k.kind in ('created', 'updated', 'existing') then e.payload end as after,
         case k.kind when 'created' then 'c' when 'updated' then 'u' when 'deleted' then 'd' when 'truncated' then 't' else 'r' end as op,
         jsonb_build_object('connector', 'aftercommit', 'db', current_database(), 'table', e.metadata ->> 'captured_from',
           'sequence', e.position, 'ts_ms', floor(extract(epoch from coalesce(e.began_at, e.recorded_at)) * 1000)::bigint) as source,
         floor(extract(epoch from e.recorded_at) * 1000)::bigint as ts_ms
    from :schema.events e
   cross join lateral (select substring(e.type from '[^.]+$')) k (kind)
   where e.metadata ? 'captured_from' and k.kind in ('created', 'updated', 'deleted', 'truncated', 'existing');
comment on column :schema.change_images.position is 'Place in the one order of all events.';
comment on column :schema.change_images.event_id is 'The event of the change.';
comment on column :schema.change_images.before is 'The row before an update or deletion.';
comment on column :schema.change_images.after is 'The row after an insert or update, or as it existed.';
comment on column :schema.change_images.op is 'c, u, d, t or r: created, updated, deleted, truncated, existing.';
comment on column :schema.change_images.source is 'Database, table and position, and when the transaction began.';
comment on column :schema.change_images.ts_ms is 'When the event was written, in milliseconds.';
comment on column :schema.change_images.aggregate_type is 'Aggregate type of the captured table.';
comment on column :schema.change_images.aggregate_id is 'Key of the row; null for a TRUNCATE.';
comment on column :schema.change_images.tenant is 'The tenant of the event.';
