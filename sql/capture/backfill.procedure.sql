-- grants: emit
-- Makes events of the rows that a captured table has already: call backfill('orders') writes order.existing for each. Commits after
-- every batch; a call that was ended early goes on where it was, and a finished one does nothing unless again => true.
create or replace procedure :schema.backfill(relation regclass, again boolean default false, batch integer default 1000)
language plpgsql as $aftercommit$
begin
  if not :schema.begin_backfill(relation, again) then return; end if;
  commit;
  loop
    perform :schema.make_room();
    commit;
    exit when :schema.backfill_batch(relation, batch) operator(pg_catalog.=) 0;
    commit;
  end loop;
end
$aftercommit$;
