-- grants: run
-- Adds work in the caller's transaction; what is unique and there already is left alone. Returns what was added.
-- `lane` is the number of a lane or, where `p_lanes` is given, the place of that number in it, from 1.
-- Holding the lock that an append holds makes arming readers wait for this transaction too, so no wake-up is lost.
create or replace function :schema.add_deliveries(p_rows jsonb, p_lanes integer[] default null) returns table (segment smallint, id bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_column
begin
  perform pg_sequence_last_value(:positions_literal::regclass);
  return query
  insert into :schema.deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, run_at, attempts,
                                  first_attempt_at, last_attempt_at, error, event_id)
  select case when r.unique_key is not null or r.run_at is not null or r.delay_ms > 2000 or r.attempts > 0 then 0 else s.segment end,
         nextval(:delivery_ids_literal::regclass), case when p_lanes is null then r.lane else p_lanes[r.lane] end,
         r.owner, r.key, coalesce(r.ordered and r.key is not null, false), r.unique_key, r.payload,
         coalesce(r.run_at, clock_timestamp() + make_interval(secs => coalesce(r.delay_ms, 0) / 1000.0)), coalesce(r.attempts, 0),
         case when r.attempts > 0 then clock_timestamp() - make_interval(secs => coalesce(r.since_first_ms, 0) / 1000.0) end,
         case when r.attempts > 0 then clock_timestamp() end, r.error, r.event_id
    from jsonb_to_recordset(p_rows) as r(lane integer, owner text, key text, ordered boolean, unique_key text, payload jsonb,
         run_at timestamptz, delay_ms double precision, attempts integer, since_first_ms double precision, error jsonb, event_id text),
         :schema.delivery_state s
  on conflict do nothing
  returning segment, id;
end
$aftercommit$;
