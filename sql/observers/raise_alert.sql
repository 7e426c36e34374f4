-- grants: run
-- Counts a failure and, if no alert about the same was sent for a while, adds one delivery per channel that tells of all
-- failures since the last one. Returns whether it did. The caller's transaction decides whether the failure counts.
create or replace function :schema.raise_alert(p_alert jsonb) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_about text := p_alert ->> 'about';
  v_every interval := make_interval(secs => (p_alert ->> 'every_seconds')::double precision);
  v_before bigint;
begin
  insert into :schema.observer_alerts (observer) values (v_about) on conflict do nothing;
  select count into v_before
    from :schema.observer_alerts
   where observer = v_about and (sent_at is null or sent_at < clock_timestamp() - v_every)
     for update;
  if not found then
    update :schema.observer_alerts set count = count + 1 where observer = v_about;
    return false;
  end if;
  update :schema.observer_alerts set count = 0, sent_at = clock_timestamp() where observer = v_about;
  perform :schema.add_deliveries(jsonb_agg(jsonb_build_object(
            'lane', :schema.delivery_lane('action', channel, '', '', 0::smallint),
            'owner', channel,
            'payload', jsonb_build_object('about', v_about, 'text', p_alert -> 'text', 'count', v_before + 1,
                                          'at', to_jsonb(clock_timestamp())))))
    from jsonb_array_elements_text(p_alert -> 'channels') channel;
  return true;
end
$aftercommit$;
