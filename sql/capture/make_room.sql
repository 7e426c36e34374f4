-- grants: emit
-- Keeps empty partitions ahead of the head while many events are written; false where that has to wait for other sessions.
create or replace function :schema.make_room() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  perform :schema.split_partitions();
  return true;
exception when lock_not_available or sqlstate 'AC009' then
  return false;
end
$aftercommit$;
