-- grants: none
-- The numbers of these lanes, in their order; those that are new are made. Two transactions that make the same lanes wait
-- for each other in one order, so neither ends in a deadlock.
create or replace function :schema.delivery_lane_numbers(p_lanes jsonb) returns integer[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  insert into :schema.delivery_lanes (kind, name, destination, tenant, priority)
  select r.kind, r.name, r.destination, r.tenant, r.priority
    from jsonb_to_recordset(p_lanes) as r(kind text, name text, destination text, tenant text, priority smallint)
   where not exists (
     select from :schema.delivery_lanes l
      where l.kind = r.kind and l.name = r.name and l.destination = r.destination and l.tenant = r.tenant and l.priority = r.priority)
   order by r.kind, r.name, r.destination, r.tenant, r.priority
  on conflict do nothing;
  return array(
    select l.lane
      from rows from (jsonb_to_recordset(p_lanes) as (kind text, name text, destination text, tenant text, priority smallint))
           with ordinality as r(kind, name, destination, tenant, priority, nth)
      join :schema.delivery_lanes l
        on l.kind = r.kind and l.name = r.name and l.destination = r.destination and l.tenant = r.tenant and l.priority = r.priority
     order by r.nth);
end
$aftercommit$;
