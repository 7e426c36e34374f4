-- why: how far the existing rows of captured tables have become events, so that a backfill goes on where it ended.
-- locks: none; every object here is new.
-- older: keep

create table :schema.backfills (
  aggregate_type text primary key,
  -- The key of the last row that became an event, column by column as text; null before the first.
  after_key text[],
  rows bigint not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
comment on table :schema.backfills is 'Backfills of captured tables: how far each has come.';
