-- why: the database holds the nesting of events to a limit as well, for every way into the log.
-- locks: settings, for a moment.
-- older: keep

alter table :schema.settings add column max_nesting integer not null default 64 check (max_nesting between 1 and 1000);
alter table :schema.settings add check (max_payload between 1 and 16777216);
