-- why: readers wait for transactions that hold the locks of the sequence and of events alone, so each number must be taken
--   under both: no partition takes numbers by itself any more.
-- locks: each partition of events, for a moment.
-- older: keep

do $aftercommit$
declare
  v_partition regclass;
begin
  for v_partition in
    select i.inhrelid::regclass from pg_catalog.pg_inherits i
     where i.inhparent = pg_catalog.to_regclass(pg_catalog.format('%I.events', :schema_literal))
  loop
    execute pg_catalog.format('alter table only %s alter column position drop default', v_partition);
  end loop;
end
$aftercommit$;
