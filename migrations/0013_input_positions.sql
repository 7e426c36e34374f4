-- why: an input that an event of the log brought is remembered as long as that event, so that a subscription set back counts it once.
-- locks: ACCESS EXCLUSIVE on workflow_inputs for an instant, and while its BRIN index is made: seconds for millions of rows.
-- older: keep

alter table :schema.workflow_inputs add column position bigint;
comment on column :schema.workflow_inputs.position is
  'Of the event of the log that brought the input; null for an input that a caller brought.';
create index workflow_inputs_position on :schema.workflow_inputs using brin (position);
