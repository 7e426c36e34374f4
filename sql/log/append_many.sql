-- grants: emit
-- Appends many in one statement, in the order given, all or nothing. Without streams and chosen ids it is one insert.
-- An array that is null counts as an array of nulls. Payloads come as one JSON array: measured, that spares a fifth of a
-- batch, since nothing is escaped on the way. p_level as in append.
create or replace function :schema.append_many(
  p_ids text[], p_types text[], p_aggregate_types text[], p_aggregate_ids text[], p_payloads jsonb, p_metadata jsonb,
  p_occurred_at timestamptz[] default null, p_extras jsonb[] default null, p_level integer default null)
returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_walks as $aftercommit$
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
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
      returning position::text;
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
  return query
    select :schema.append(e.id, e.type, e.aggregate_type, e.aggregate_id, e.payload, e.metadata, e.occurred_at, e.extra)
      from rows from (unnest(p_ids), unnest(p_types), unnest(p_aggregate_types), unnest(p_aggregate_ids),
          jsonb_array_elements(p_payloads), jsonb_array_elements(p_metadata), unnest(p_occurred_at), unnest(p_extras))
        with ordinality as e (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at, extra, n)
     order by e.n;
end
$aftercommit$;
