-- grants: none
-- The lowest position from which partitions follow each other without a gap up to the open one; null without partitions.
create or replace function :schema.unbroken_from() returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with bounds as (
    select substring(b from 'FROM \(''?(\d+)')::bigint as low, substring(b from 'TO \(''?(\d+)')::bigint as high
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     cross join lateral pg_get_expr(c.relpartbound, c.oid) as p(b)
     where i.inhparent = to_regclass(format('%I.events', :schema_literal)))
  select max(low) from bounds l where not exists (select from bounds p where p.high = l.low)
$aftercommit$;
