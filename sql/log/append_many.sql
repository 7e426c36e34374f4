-- grants: emit
-- Appends many in one statement, in the order given, all or nothing. Without chosen ids it is one insert, and one update of
-- the rows of its streams: every version of such a row stays until the transaction ends, and the next update walks past it.
-- An array that is null counts as an array of nulls. Payloads come as one JSON array: measured, that spares a fifth of a
-- batch, since nothing is escaped on the way. p_level as in append.
create or replace function :schema.append_many(
  p_ids text[], p_types text[], p_aggregate_types text[], p_aggregate_ids text[], p_payloads jsonb, p_metadata jsonb,
  p_occurred_at timestamptz[] default null, p_extras jsonb[] default null, p_level integer default null)
returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_walks as $aftercommit$
declare
  v_conflict record;
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if :schema.has_session() then
    p_metadata := (
      select jsonb_agg(:schema.session_metadata(e.id, e.metadata) order by e.place)
        from rows from (unnest(p_ids), jsonb_array_elements(p_metadata)) with ordinality as e (id, metadata, place));
    if nullif(current_setting('aftercommit.tenant', true), '') is not null then
      p_extras := array(
        select case when e.extra ? 'tenant' then e.extra
                 else coalesce(e.extra, '{}') || jsonb_build_object('tenant', current_setting('aftercommit.tenant')) end
          from rows from (unnest(p_ids), unnest(p_extras)) with ordinality as e (id, extra, place)
         order by e.place);
    end if;
  end if;
  if (p_extras is null or not exists (select from unnest(p_extras) x where x ?| array['chosen', 'expected']))
     and not exists (select from :schema.stream_types where aggregate_type = any (p_aggregate_types)) then
    return query
      insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
      select e.id, e.type, e.aggregate_type, e.aggregate_id, e.extra ->> 'tenant', e.payload,
             e.extra -> 'changes', e.extra -> 'previous', e.metadata, coalesce(e.occurred_at, clock_timestamp())
        from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
          as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra)
       where case when :schema.may_break_limits(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra)
                 then :schema.check_event(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra) else true end
      returning case when :schema.has_swollen(bytes, payload)
                       and not :schema.check_event(type, aggregate_type, aggregate_id, payload, metadata, null)
                  then null else position::text end;
    return;
  end if;

  -- Rows of streams are made and locked in one order whatever the order of the events: two batches cannot deadlock.
  insert into :schema.streams (aggregate_type, aggregate_id, version)
  select w.t, w.i,
         case when d.adopted
           then (select count(*) from :schema.events e where e.aggregate_type = w.t and e.aggregate_id = w.i) else 0 end
    from (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
    join :schema.stream_types d on d.aggregate_type = w.t
   order by w.t, w.i
  on conflict do nothing;
  perform from (
    select from :schema.streams s
      join (select distinct a.t, a.i from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)) w
        on s.aggregate_type = w.t and s.aggregate_id = w.i
     order by s.aggregate_type, s.aggregate_id
       for update of s) locked;
  if p_extras is null or not exists (select from unnest(p_extras) x where x ? 'chosen') then
    if exists (select from unnest(p_extras) x where x ? 'expected') then
      select e.t, e.i, s.version + e.before as found, e.expected, s.version is null as is_plain into v_conflict
        from (select a.t, a.i, a.n, (a.x ->> 'expected')::bigint as expected, row_number() over (partition by a.t, a.i order by a.n) - 1 as before
                from rows from (unnest(p_aggregate_types), unnest(p_aggregate_ids), unnest(p_extras)) with ordinality as a (t, i, x, n)) e
        left join (:schema.streams s join :schema.stream_types d using (aggregate_type))
          on s.aggregate_type = e.t and s.aggregate_id = e.i
       where e.expected is not null and s.version + e.before is distinct from e.expected
       order by e.n
       limit 1;
      if found and v_conflict.is_plain then
        raise exception 'Aggregate type % is not declared as a stream.', coalesce(v_conflict.t, '(none)') using errcode = 'AC002';
      elsif found then
        raise exception 'Stream %/% is at version %, not %.', v_conflict.t, v_conflict.i, v_conflict.found, v_conflict.expected
          using errcode = 'AC001', detail = v_conflict.found::text;
      end if;
    end if;
    return query
      with counted as (
        select a.t, a.i, count(*) as events
          from unnest(p_aggregate_types, p_aggregate_ids) as a (t, i)
          join :schema.stream_types d on d.aggregate_type = a.t
         group by a.t, a.i),
      raised as (
        update :schema.streams s set version = s.version + c.events
          from counted c
         where s.aggregate_type = c.t and s.aggregate_id = c.i
        returning s.aggregate_type, s.aggregate_id, s.version - c.events as before),
      appended as (
        insert into :schema.events (id, type, aggregate_type, aggregate_id, version, tenant, payload, changes, previous, metadata, occurred_at)
        select o.id, o.type, o.aggregate_type, o.aggregate_id, o.version, o.extra ->> 'tenant', o.payload,
               o.extra -> 'changes', o.extra -> 'previous', o.metadata, coalesce(o.occurred_at, clock_timestamp())
          from (select e.*, r.before + row_number() over (partition by e.aggregate_type, e.aggregate_id order by e.n) as version
                  from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
                    jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
                    with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
                  left join raised r on r.aggregate_type = e.aggregate_type and r.aggregate_id = e.aggregate_id
                 where case when :schema.may_break_limits(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra)
                   then :schema.check_event(e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.extra) else true end
                 order by e.n) o
        returning version, case when :schema.has_swollen(bytes, payload)
                                  and not :schema.check_event(type, aggregate_type, aggregate_id, payload, metadata, null)
                             then null else position end as position)
      select concat_ws(':', position, version) from appended order by position;
    return;
  end if;
  return query
    select :schema.append(e.id, e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.occurred_at, e.extra)
      from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
        with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
     order by e.n;
end
$aftercommit$;
