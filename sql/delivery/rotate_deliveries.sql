-- grants: run
-- Empties segments that have run dry and makes the next one current. TRUNCATE needs an exclusive lock for a moment: it is
-- asked for with a short timeout, and the segment is looked at again under it. Returns what was done.
create or replace function :schema.rotate_deliveries(p_least bigint) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '30ms' as $aftercommit$
declare
  v_state record;
  v_next smallint;
  v_last bigint := coalesce(pg_sequence_last_value(:delivery_ids_literal::regclass), 0);
  v_empty boolean;
  v_done text[] := '{}';
begin
  -- The second look under the lock must see what was committed meanwhile.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'Segments are only rotated in a transaction at READ COMMITTED.';
  end if;
  select * into v_state from :schema.delivery_state for update skip locked;
  if not found then return v_done; end if;
  for v_segment in 1 .. 4 loop
    continue when v_segment = v_state.segment
      or pg_relation_size(format('%I.deliveries_%s', :schema_literal, v_segment)::regclass) = 0;
    execute format('select not exists (select from %I.deliveries_%s)', :schema_literal, v_segment) into v_empty;
    continue when not v_empty;
    begin
      execute format('lock table %I.deliveries_%s in access exclusive mode', :schema_literal, v_segment);
      execute format('select not exists (select from %I.deliveries_%s)', :schema_literal, v_segment) into v_empty;
      if v_empty then
        execute format('truncate %I.deliveries_%s', :schema_literal, v_segment);
        v_done := v_done || format('truncated %s', v_segment);
      end if;
    exception when lock_not_available then
      null;
    end;
  end loop;
  v_next := v_state.segment % 4 + 1;
  if v_last - v_state.since_id >= p_least
     and pg_relation_size(format('%I.deliveries_%s', :schema_literal, v_next)::regclass) = 0 then
    update :schema.delivery_state set segment = v_next, since_id = v_last;
    v_done := v_done || format('current %s', v_next);
  end if;
  return v_done;
end
$aftercommit$;
