-- why: tables whose row changes become events: which ones, and how each is captured.
-- locks: none; every object here is new.
-- older: keep

create table :schema.captured_tables (
  aggregate_type text primary key,
  relation regclass not null unique,
  -- The name when it was last looked at: a table that was dropped and made again is found by it.
  table_schema text not null,
  table_name text not null,
  omit text[] not null default '{}',
  -- Their numbers in the table: a column that is left out stays so under a new name.
  omit_numbers smallint[] not null default '{}',
  on_truncate text not null default 'event' check (on_truncate in ('event', 'deny', 'ignore')),
  each text not null default 'statement' check (each in ('statement', 'row')),
  unchanged boolean not null default false,
  captured_at timestamptz not null default clock_timestamp(),
  unique (table_schema, table_name)
);
comment on table :schema.captured_tables is 'Tables whose row changes become events. Rows are written with capture() and removed with uncapture().';
comment on column :schema.captured_tables.aggregate_type is 'Aggregate type of the events, and the first part of their type.';
comment on column :schema.captured_tables.relation is 'The table; of a partitioned or inherited table the parent.';
comment on column :schema.captured_tables.omit is 'Columns that are left out of every event.';
comment on column :schema.captured_tables.on_truncate is 'TRUNCATE writes an event, is denied, or is ignored.';
comment on column :schema.captured_tables.each is 'Whether triggers fire once per statement or once per row.';
comment on column :schema.captured_tables.unchanged is 'Whether an UPDATE that changes nothing is an event.';
