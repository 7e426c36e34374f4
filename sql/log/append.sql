-- grants: emit
-- Appends one event and returns 'position' or 'position:version'. A plain event is one insert; streams and chosen ids
-- take their row first. Values that are seldom given come in p_extra: tenant, changes, previous, chosen (the caller chose the
-- id), expected (the version the stream must be at). A scalar result and few parameters: measured 10 % per append.
-- p_level is the last breaking migration that the process knows; SQL has none. The least one allowed is written into the
-- function, so that the check reads no table.
create or replace function :schema.append(
  p_id text, p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb,
  p_occurred_at timestamptz default null, p_extra jsonb default null, p_level integer default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $aftercommit$
declare
  v_adopted boolean;
  v_version bigint;
  v_position bigint;
  v_bytes integer;
  v_known text;
  v_content bytea;
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was emitted.'
      using errcode = 'AC015';
  end if;
  if :schema.has_session() then
    p_metadata := :schema.session_metadata(p_id, p_metadata);
    if nullif(current_setting('aftercommit.tenant', true), '') is not null and not coalesce(p_extra ? 'tenant', false) then
      p_extra := coalesce(p_extra, '{}') || jsonb_build_object('tenant', current_setting('aftercommit.tenant'));
    end if;
  end if;
  if :schema.may_break_limits(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra) then
    perform :schema.check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
  end if;
  -- Nearly every event ends here. Whether its type is a stream is asked by the insert itself: each statement more is felt.
  if p_extra is null then
    insert into :schema.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
    select p_id, p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, coalesce(p_occurred_at, clock_timestamp())
     where not exists (select from :schema.stream_types where aggregate_type = p_aggregate_type)
    returning position, bytes into v_position, v_bytes;
    if found then
      if :schema.has_swollen(v_bytes, p_payload) then
        perform :schema.check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
      end if;
      return v_position;
    end if;
  end if;
  if p_extra ? 'chosen' then
    v_content := :schema.content_of(p_type, p_aggregate_type, p_aggregate_id, p_extra ->> 'tenant', p_payload, p_extra -> 'changes');
    v_known := :schema.place_of_id(p_id, v_content);
    if v_known is not null then return v_known; end if;
  end if;

  if p_aggregate_type is not null then
    select adopted into v_adopted from :schema.stream_types where aggregate_type = p_aggregate_type;
    if found then
      v_version := :schema.next_version(p_aggregate_type, p_aggregate_id, v_adopted);
      if v_version - 1 <> (p_extra ->> 'expected')::bigint then
        -- The transaction that had the row of the stream before may have appended this very id: then it is no conflict.
        if p_extra ? 'chosen' then
          v_known := :schema.place_of_id(p_id, v_content);
          if v_known is not null then
            update :schema.streams set version = version - 1
             where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
            return v_known;
          end if;
        end if;
        raise exception 'Stream %/% is at version %, not %.',
          p_aggregate_type, p_aggregate_id, v_version - 1, p_extra ->> 'expected'
          using errcode = 'AC001', detail = (v_version - 1)::text;
      end if;
    end if;
  end if;

  if p_extra is null then
    insert into :schema.events (id, type, aggregate_type, aggregate_id, version, payload, metadata, occurred_at)
    values (p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_payload, p_metadata, coalesce(p_occurred_at, clock_timestamp()))
    returning position, bytes into v_position, v_bytes;
    if :schema.has_swollen(v_bytes, p_payload) then
      perform :schema.check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
    end if;
    return concat_ws(':', v_position, v_version);
  end if;

  if v_version is null and p_extra ? 'expected' then
    raise exception 'Aggregate type % is not declared as a stream.', coalesce(p_aggregate_type, '(none)')
      using errcode = 'AC002';
  end if;
  -- Readers wait for transactions that hold the locks of events and of the sequence: this one comes first (decision 0001).
  lock table only :schema.events in row exclusive mode;
  v_position := nextval(:positions_literal);
  if p_extra ? 'chosen' then
    insert into :schema.event_ids (id, position, version, content) values (p_id, v_position, v_version, v_content)
    on conflict (id) do nothing;
    if not found then
      -- Somebody else's append of the same id committed while this one waited for it: theirs is the event. The version
      -- taken above is given back, and the number becomes a hole.
      if v_version is not null then
        update :schema.streams set version = version - 1
         where aggregate_type = p_aggregate_type and aggregate_id = p_aggregate_id;
      end if;
      return :schema.place_of_id(p_id, v_content);
    end if;
  end if;
  insert into :schema.events (position, id, type, aggregate_type, aggregate_id, version, tenant, payload, changes, previous, metadata, occurred_at)
  values (v_position, p_id, p_type, p_aggregate_type, p_aggregate_id, v_version, p_extra ->> 'tenant', p_payload,
    p_extra -> 'changes', p_extra -> 'previous', p_metadata, coalesce(p_occurred_at, clock_timestamp()))
  returning bytes into v_bytes;
  if :schema.has_swollen(v_bytes, p_payload) then
    perform :schema.check_event(p_type, p_aggregate_type, p_aggregate_id, p_payload, p_metadata, p_extra);
  end if;
  return concat_ws(':', v_position, v_version);
end
$aftercommit$;
