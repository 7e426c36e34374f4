-- grants: emit
-- Appends the rows of a table of events that existed before, in their order: call import_events('old_events',
-- order_by => '{created_at,id}', columns => '{"type": "event_type", "payload": "data", "occurred_at": "created_at"}'). Commits after every
-- batch; a call that was ended early goes on where it was, and a later one appends rows that have come since.
create or replace procedure :schema.import_events(relation regclass, order_by text[], columns jsonb, batch integer default 1000)
language plpgsql as $aftercommit$
begin
  loop
    perform :schema.make_room();
    commit;
    exit when :schema.import_batch(relation, order_by, columns, batch) operator(pg_catalog.=) 0;
    commit;
  end loop;
end
$aftercommit$;
