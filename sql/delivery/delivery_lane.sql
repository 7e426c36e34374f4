-- grants: run
-- Makes the lane if it is new. A statement of its own: a lane may outlive the transaction that first wanted it.
create or replace function :schema.delivery_lane(
  p_kind text, p_name text, p_destination text, p_tenant text, p_priority smallint)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_lane integer;
begin
  loop
    select lane into v_lane from :schema.delivery_lanes
     where kind = p_kind and name = p_name and destination = p_destination and tenant = p_tenant and priority = p_priority;
    if found then return v_lane; end if;
    insert into :schema.delivery_lanes (kind, name, destination, tenant, priority)
    values (p_kind, p_name, p_destination, p_tenant, p_priority)
    on conflict do nothing
    returning lane into v_lane;
    if found then return v_lane; end if;
  end loop;
end
$aftercommit$;
