-- grants: run
-- Lanes that have rows, one probe each, never a scan of the rows themselves: so many after p_after, then from the
-- beginning. A caller that asks again with the last lane it got sees all of them in turn.
create or replace function :schema.busy_lanes(p_after integer, p_most integer) returns setof integer
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with recursive later(lane, n) as (
    (select lane, 1 from :schema.deliveries where lane > p_after order by lane limit 1)
    union all
    select (select d.lane from :schema.deliveries d where d.lane > b.lane order by d.lane limit 1), b.n + 1
      from later b
     where b.lane is not null and b.n < p_most),
  earlier(lane, n) as (
    (select lane, 1 from :schema.deliveries where lane <= p_after order by lane limit 1)
    union all
    select (select d.lane from :schema.deliveries d where d.lane > b.lane and d.lane <= p_after order by d.lane limit 1), b.n + 1
      from earlier b
     where b.lane is not null and b.n < p_most)
  select found.lane
    from (select lane from later union all select lane from earlier) found
   where found.lane is not null
   limit p_most
$aftercommit$;
