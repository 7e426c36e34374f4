-- grants: none
-- Refuses TRUNCATE of the log: readers would take the numbers of removed events for rolled back.
create or replace function :schema.refuse_truncate() returns trigger
language plpgsql as $aftercommit$
begin
  raise exception 'The log is not truncated: readers would take its numbers for rolled back.'
    using errcode = 'AC008', hint = 'Set a retention, or drop the schema to start anew.';
end
$aftercommit$;
