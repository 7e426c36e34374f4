-- why: how far tables of events that existed before have been imported, so that an import goes on where it ended.
-- locks: none; every object here is new.
-- older: keep

create table :schema.imports (
  source text primary key,
  -- The order columns of the last row that was imported, as text; null before the first.
  after_key text[],
  rows bigint not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
comment on table :schema.imports is 'Imports of tables of events: how far each has come.';
