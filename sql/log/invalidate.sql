-- grants: emit
-- Lets the caches inside all processes go of these keys once the transaction commits, and returns the position of the event
-- that says so. At most 1,000 keys of at most 1,000 characters each, and no patterns: every process compares them.
create or replace function :schema.invalidate(keys text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_id text := :schema.new_id();
  v_position bigint;
begin
  if coalesce(cardinality(keys), 0) not between 1 and 1000 or exists (select from unnest(keys) key where key is null or length(key) > 1000) then
    raise exception 'invalidate takes 1 to 1,000 keys of at most 1,000 characters each; nothing was emitted.' using errcode = 'AC004';
  end if;
  insert into :schema.events (id, type, payload, metadata, occurred_at)
  values (v_id, 'aftercommit.cache.invalidated', jsonb_build_object('action', 'invalidate', 'keys', to_jsonb(keys), 'patterns', '[]'::jsonb),
    jsonb_build_object('correlation_id', v_id), clock_timestamp())
  returning position into v_position;
  return v_position;
end
$aftercommit$;
