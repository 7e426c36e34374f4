-- grants: run
-- Lanes that may have something due, found by probes and never by a scan of their rows: those of the rotating segments,
-- which hold little else, and those of the oldest rows that were put off and are due. Where that is not all, others may be
-- hidden behind lanes that are held back or of foreign names: then the registered ones that are not paused are looked at one
-- by one. With a null when there may be still more.
create or replace function :schema.due_lanes(p_names jsonb, p_most integer) returns setof integer
language plpgsql set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  -- From a little before the first to a little after the last, so that those at the ends are met as often as others.
  v_begin integer := floor(random() * (coalesce((select max(lane) from :schema.delivery_lanes), 0) + 100))::integer - 50;
  v_rotating integer[];
  v_put_off integer[];
  v_known integer[] := '{}';
  v_more boolean;
begin
  v_rotating := array(
    with recursive later(lane, n) as (
      (select lane, 1 from :schema.deliveries where segment in (1, 2, 3, 4) and lane > v_begin order by lane limit 1)
      union all
      select (select d.lane from :schema.deliveries d where d.segment in (1, 2, 3, 4) and d.lane > b.lane order by d.lane limit 1), b.n + 1
        from later b
       where b.lane is not null and b.n < p_most),
    earlier(lane, n) as (
      (select lane, 1 from :schema.deliveries where segment in (1, 2, 3, 4) and lane <= v_begin order by lane limit 1)
      union all
      select (select d.lane from :schema.deliveries d
               where d.segment in (1, 2, 3, 4) and d.lane > b.lane and d.lane <= v_begin order by d.lane limit 1), b.n + 1
        from earlier b
       where b.lane is not null and b.n < p_most)
    select found.lane
      from (select lane from later union all select lane from earlier) found
     where found.lane is not null
     limit p_most);
  v_put_off := array(
    select d.lane from :schema.deliveries d
     where d.segment = 0 and d.run_at <= v_now and d.token is null
     order by d.run_at
     limit 300);
  v_more := cardinality(v_rotating) = p_most;
  if v_more or cardinality(v_put_off) = 300 then
    v_known := array(
      select l.lane
        from (select n.kind, n.name
                from jsonb_to_recordset(p_names) as n(kind text, name text)
                left join :schema.delivery_pauses p on p.kind = n.kind and p.name = n.name
               where p.kind is null
               -- In any order: one with many lanes must not be first every time.
               order by random()) n
       cross join lateral (
         (select l.lane
            from :schema.delivery_lanes l
            left join :schema.destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane > v_begin and t.destination is null
           order by l.lane
           limit 2000)
         union all
         (select l.lane
            from :schema.delivery_lanes l
            left join :schema.destinations t on t.destination = l.destination and t.paused
           where l.kind = n.kind and l.name = n.name and l.lane <= v_begin and t.destination is null
           order by l.lane
           limit 2000)) l
       limit 2000);
    v_more := v_more or cardinality(v_known) = 2000;
    v_known := array(
      select u.lane
        from unnest(v_known) as u(lane)
       cross join lateral (
         select from :schema.deliveries d
          where d.lane = u.lane and d.run_at <= v_now and d.token is null
          order by d.run_at, d.id
          limit 1) d
       limit p_most);
    v_more := v_more or cardinality(v_known) = p_most;
  end if;
  return query select distinct u.lane from unnest(v_rotating || v_put_off || v_known) as u(lane);
  if v_more then return next null; end if;
end
$aftercommit$;
