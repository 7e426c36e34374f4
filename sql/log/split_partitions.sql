-- grants: run
-- Splits the open-ended last partition while it is empty: the faster the log grows, the more room is made ahead. An append
-- never waits for more than the short lock_timeout, and never fails for want of a partition: until the split succeeds, rows
-- go into the open one. Returns what was added.
create or replace function :schema.split_partitions() returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $aftercommit$
declare
  v_size bigint := (select partition_size from :schema.settings);
  v_open_from bigint;
  v_from bigint;
  v_head bigint := (select last_value from :schema.positions);
  -- Room for three times what came in the last minutes: a bulk load must not reach the open partition before the next upkeep.
  v_ahead bigint := (
    select least(greatest(v_size, 3 * (v_head - min(frontier))), 20 * v_size)
      from :schema.frontier_marks
     where at > clock_timestamp() - interval '3 minutes');
  v_name text;
  v_added text[] := '{}';
begin
  -- Looked at twice: another process may have split it while this one waited for the lock.
  for v_look in 1 .. 2 loop
    select coalesce(substring(pg_get_expr(c.relpartbound, c.oid) from 'FROM \(''?(\d+)')::bigint, 0) into v_open_from
      from pg_class c
     where c.oid = to_regclass(format('%I.events_open', :schema_literal));
    -- At least two partitions of room ahead of the head: the split happens long before the open one is written to.
    if v_head + v_ahead < v_open_from then return v_added; end if;
    if v_look = 1 then
      lock table :schema.events in access exclusive mode;
    end if;
  end loop;

  if v_open_from is not null then
    if exists (select from :schema.events_open) then
      raise exception 'The open partition holds events, so it cannot be split.' using errcode = 'AC009';
    end if;
    alter table :schema.events detach partition :schema.events_open;
    drop table :schema.events_open;
  else
    v_open_from := 0;
  end if;

  v_from := v_open_from;
  loop
    v_name := format('events_%s', lpad(v_from::text, greatest(12, length(v_from::text)), '0'));
    execute format('create table %1$I.%2$I partition of %1$I.events for values from (%3$s) to (%4$s)',
      :schema_literal, v_name, v_from, v_from + v_size);
    -- Numbers are taken through the parent alone: its lock is a part of what readers wait for (decision 0001).
    execute format('alter table only %I.%I alter column position drop default', :schema_literal, v_name);
    v_added := v_added || v_name;
    v_from := v_from + v_size;
    exit when v_head + v_ahead < v_from;
  end loop;
  execute format('create table %1$I.events_open partition of %1$I.events for values from (%2$s) to (maxvalue)',
    :schema_literal, v_from);
  alter table only :schema.events_open alter column position drop default;
  return v_added;
end
$aftercommit$;
