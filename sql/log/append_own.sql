-- grants: run
-- Appends an event of the library itself, whose type begins with `aftercommit.`: the way in of running processes alone, because
-- every process acts on such events. The id is chosen. Returns the position.
create or replace function :schema.append_own(p_id text, p_type text, p_payload jsonb, p_metadata jsonb, p_level integer default null)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_content bytea := :schema.content_of(p_type, null, null, null, p_payload, null);
  v_known text := :schema.place_of_id(p_id, v_content);
  v_position bigint;
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if not p_type ^@ 'aftercommit.' then
    raise exception 'Event type % is not one of the library itself; nothing was emitted.', quote_nullable(left(p_type, 80))
      using errcode = 'AC003';
  end if;
  if v_known is not null then return v_known::bigint; end if;
  perform :schema.check_event(null, null, null, p_payload, p_metadata, null);
  -- Readers wait for transactions that hold the locks of events and of the sequence: this one comes first (decision 0001).
  lock table only :schema.events in row exclusive mode;
  v_position := nextval(:positions_literal);
  insert into :schema.event_ids (id, position, content) values (p_id, v_position, v_content) on conflict (id) do nothing;
  if not found then return :schema.place_of_id(p_id, v_content)::bigint; end if;
  insert into :schema.events (position, id, type, payload, metadata, occurred_at)
  values (v_position, p_id, p_type, p_payload, p_metadata, clock_timestamp());
  return v_position;
end
$aftercommit$;
