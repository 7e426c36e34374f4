-- why: an observation is kept for as long as the process that wrote it said, whatever another process is set to.
-- locks: ACCESS EXCLUSIVE on input_observations for an instant, and while its BRIN index is made: seconds for millions of rows.
-- older: keep

alter table :schema.input_observations add column keep_until timestamptz;
comment on column :schema.input_observations.keep_until is
  'When it goes, as the process that wrote it was set; null for 30 days.';
create index input_observations_end on :schema.input_observations using brin (keep_until);
