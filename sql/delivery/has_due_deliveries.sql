-- grants: run
-- Whether something of the registered names could be done now but for a limit, a circuit or a rest of its destination. Rows
-- that are paused, or stand behind a dead letter, wait for an operator, perhaps for ever, and do not count.
-- Every lane is looked at: the caller ends its work when the answer is no.
create or replace function :schema.has_due_deliveries(p_names jsonb) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
begin
  return exists (
    select from jsonb_to_recordset(p_names) as n(kind text, name text)
      join :schema.delivery_lanes l on l.kind = n.kind and l.name = n.name
      left join :schema.delivery_pauses p on p.kind = l.kind and p.name = l.name
      left join :schema.destinations t on t.destination = l.destination and t.paused
     where p.kind is null and t.destination is null
       and case
             when not exists (select from :schema.deliveries d where d.lane = l.lane and d.run_at <= v_now and d.token is null) then false
             when exists (select from :schema.deliveries d
                           where d.lane = l.lane and d.run_at <= v_now and d.token is null and not d.ordered) then true
             else exists (select from :schema.first_in_turn(l.lane, v_now, 1))
           end);
end
$aftercommit$;
