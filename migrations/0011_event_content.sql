-- why: an id that was chosen stands for one event: a hash of its content tells a repetition from another event.
-- locks: event_ids, for a moment.
-- older: keep

alter table :schema.event_ids add column content bytea;
comment on column :schema.event_ids.content is 'Hash of type, aggregate, tenant, payload and changes; null for ids from before it was kept.';

create table :schema.id_turns (turn integer primary key) with (fillfactor = 50);
comment on table :schema.id_turns is 'Rows that batches with chosen ids lock in order, so that they never wait for each other in a circle.';
insert into :schema.id_turns select turn from pg_catalog.generate_series(0, 63) turn;
