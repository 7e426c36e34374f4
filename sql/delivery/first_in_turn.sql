-- grants: run
-- Rows that may be done next in a lane with an order: the first row of each key that has one due here, unless it is in
-- another lane of the name or a dead letter stands before it, and every row without an order.
create or replace function :schema.first_in_turn(p_lane integer, p_now timestamptz, p_most integer)
returns table (segment smallint, id bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp :index_walks
as $aftercommit$
#variable_conflict use_column
declare
  v_of record;
begin
  -- Where the walk below begins and ends: most names have one lane, and then it looks no further.
  select l.kind, l.name,
         (select min(s.lane) from :schema.delivery_lanes s where s.kind = l.kind and s.name = l.name) as first_lane,
         (select max(s.lane) from :schema.delivery_lanes s where s.kind = l.kind and s.name = l.name) as last_lane
    into v_of
    from :schema.delivery_lanes l
   where l.lane = p_lane;
  return query
  select c.segment, c.id
    from (select h.segment, h.id, h.run_at
            from (select distinct w.key
                    -- Along the index by lane: what is looked at here must not be more than what is due in this one.
                    from (select d.key, d.ordered
                            from :schema.deliveries d
                           where d.lane = p_lane and d.token is null and d.run_at <= p_now
                           order by d.run_at, d.id
                          offset 0) w
                   where w.ordered) k
           cross join lateral (
             -- The first of the key in each lane, from lane to lane: other names may have much of the same key.
             with recursive heads as (
               (select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                  from :schema.deliveries e
                 where e.ordered and e.key = k.key and e.lane >= v_of.first_lane and e.lane <= v_of.last_lane
                 order by e.lane, e.id
                 limit 1)
               union all
               select n.segment, n.id, n.lane, n.owner, n.token, n.run_at
                 from heads b
                cross join lateral (
                  select e.segment, e.id, e.lane, e.owner, e.token, e.run_at
                    from :schema.deliveries e
                   where e.ordered and e.key = k.key and e.lane > b.lane and e.lane <= v_of.last_lane
                   order by e.lane, e.id
                   limit 1) n
                where b.lane < v_of.last_lane)
             select f.segment, f.id, f.lane, f.owner, f.token, f.run_at
               from heads f
               join :schema.delivery_lanes s on s.lane = f.lane
              where s.kind = v_of.kind and s.name = v_of.name
              order by f.id
              limit 1) h
           where h.lane = p_lane
             and h.token is null
             and h.run_at <= p_now
             and not exists (
               select from :schema.letters x
                where x.kind = v_of.kind and x.owner = h.owner and x.key = k.key and x.parks
                  and (x.status = 'dead' or x.status = 'redriving' and x.delivery is not null and x.placed is null))
          union all
          (select d.segment, d.id, d.run_at
             from :schema.deliveries d
            where d.lane = p_lane and not d.ordered and d.token is null and d.run_at <= p_now
            order by d.run_at, d.id
            limit p_most)) c
   order by c.run_at, c.id
   limit p_most;
end
$aftercommit$;
