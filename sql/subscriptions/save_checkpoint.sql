-- grants: run
-- Moves a checkpoint and writes what the events that it passes leave behind, both or neither: rows for later attempts, dead
-- letters, alerts and run records. An event may leave something before it is finished: `settled` names the owners of those
-- actions, so that the next owner of the subscription does not attempt them again. `p_save` numbers the writes of a subscription, so a write that is repeated because its
-- answer was lost finds its number taken and changes nothing. `resolved` and `waited` are dead letters, and events behind
-- them, that were redriven: they are settled with what they leave. False when the lease changed hands.
create or replace function :schema.save_checkpoint(
  p_id text, p_term bigint, p_server text, p_save bigint, p_position bigint, p_done int8multirange, p_last_event_id text, p_left jsonb)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_server constant text := extract(epoch from pg_postmaster_start_time())::text;
  v_lanes integer[];
begin
  update :schema.subscription_partitions
     set position = p_position, done = p_done, last_event_id = coalesce(p_last_event_id, last_event_id), save = p_save,
         settled = p_left -> 'settled', deaths = case when position < p_position then 0 else deaths end, updated_at = clock_timestamp()
   where id = p_id and term = p_term and save < p_save and v_server = p_server;
  if not found then
    return exists (
      select from :schema.subscription_partitions where id = p_id and term = p_term and save >= p_save and v_server = p_server);
  end if;
  v_lanes := :schema.delivery_lane_numbers(p_left -> 'lanes');
  if p_left -> 'rows' <> '[]' then
    perform :schema.add_deliveries(p_left -> 'rows', v_lanes);
  end if;
  insert into :schema.letters as l
    (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks, delivery)
  select r.kind, r.owner, r.key, r.event_id, r.position, r.event, r.error, r.attempts,
         clock_timestamp() - make_interval(secs => r.since_first_ms / 1000.0), clock_timestamp(), r.ordered,
         case when r.payload is not null then
           jsonb_build_object('id', nextval(:delivery_ids_literal::regclass), 'lane', v_lanes[r.lane], 'key', r.order_key,
                              'ordered', r.ordered, 'unique_key', null, 'event_id', r.event_id, 'payload', r.payload) end
    from jsonb_to_recordset(p_left -> 'letters') as r(lane integer, kind text, owner text, key text, order_key text, event_id text,
         position bigint, event jsonb, error jsonb, attempts integer, since_first_ms double precision, ordered boolean, payload jsonb)
  on conflict (kind, owner, event_id) do update
    set error = excluded.error, attempts = l.attempts + excluded.attempts, status = 'dead', parks = excluded.parks,
        delivery = excluded.delivery, placed = null, last_attempt_at = excluded.last_attempt_at, changed_at = clock_timestamp();
  if p_left -> 'resolved' <> '[]' then
    update :schema.letters set status = 'resolved', changed_at = clock_timestamp()
     where id in (select value::bigint from jsonb_array_elements_text(p_left -> 'resolved')) and status = 'redriving';
  end if;
  if p_left -> 'waited' <> '[]' then
    delete from :schema.parked
     where owner = p_id and position in (select value::bigint from jsonb_array_elements_text(p_left -> 'waited'));
  end if;
  perform :schema.raise_alert(alert) from jsonb_array_elements(p_left -> 'alerts') alert;
  insert into :schema.runs (event_id, position, owner, event_type, aggregate_type, aggregate_id, tenant, trace_id, attempt, actions,
                            status, duration_ms)
  select r.event_id, r.position, r.observer, r.event_type, r.aggregate_type, r.aggregate_id, r.tenant, r.trace_id, r.attempt,
         r.actions, r.status, r.duration_ms
    from jsonb_to_recordset(p_left -> 'runs') as r(event_id text, position bigint, observer text, event_type text, aggregate_type text,
         aggregate_id text, tenant text, trace_id text, attempt integer, actions jsonb, status text, duration_ms double precision);
  return true;
end
$aftercommit$;
