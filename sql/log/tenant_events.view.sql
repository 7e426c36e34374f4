-- grants: read
-- Events of the tenant that the session names in aftercommit.tenant; none without it. The barrier keeps conditions of a query from
-- seeing rows of other tenants. It guards against mistakes of an application, not against the SQL of the role: who may write
-- SQL may also name another tenant.
create or replace view :schema.tenant_events with (security_barrier) as
  select e.position, e.id, e.type, e.aggregate_type, e.aggregate_id, e.version, e.tenant, e.payload, e.changes, e.previous,
         e.metadata, e.occurred_at, e.recorded_at,
         round(extract(epoch from e.recorded_at - e.began_at) * 1000, 3) as duration_ms
    from :schema.events e
   where e.tenant = nullif(current_setting('aftercommit.tenant', true), '');
comment on column :schema.tenant_events.position is 'Place in the one order of all events.';
comment on column :schema.tenant_events.duration_ms is 'How long the transaction had run when it wrote the event.';
comment on column :schema.tenant_events.id is 'Id of the event.';
comment on column :schema.tenant_events.type is 'Dotted lower-case name, like order.placed.';
comment on column :schema.tenant_events.aggregate_type is 'Type of the thing that the event is about.';
comment on column :schema.tenant_events.aggregate_id is 'Id of the thing that the event is about.';
comment on column :schema.tenant_events.version is 'Place in its stream; null for plain events.';
comment on column :schema.tenant_events.tenant is 'The tenant of the session.';
comment on column :schema.tenant_events.payload is 'Content of the event.';
comment on column :schema.tenant_events.changes is 'Field → {old, new}, for events that report a change.';
comment on column :schema.tenant_events.previous is 'The image before the change, where it is stored.';
comment on column :schema.tenant_events.metadata is 'Correlation and causation ids, user, trace and what the emitter added.';
comment on column :schema.tenant_events.occurred_at is 'When it happened, as the emitter says.';
comment on column :schema.tenant_events.recorded_at is 'When the row was written.';
