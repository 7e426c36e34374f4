-- grants: run
-- Writes everything that follows from inputs, and deletes deliveries that ended: all of it, or nothing. The caller holds the
-- locks of workflow_load. A step is {type, id, version, …}, with `events` as {id, type, payload, metadata}, `effects` as
-- {lane, payload} and `timers` as {payload, unique_key, due}; `done` is the delivery that brought its input, as {segment, id,
-- token} like each of p_ended: where its claim was lost, nothing is written. p_level as in append.
-- Returns {segment, deleted: ids, steps: [{position, claimed: ids}]}: the position of the last event of each step, and its
-- effects in `segment` that its worker has claimed already. Or {taken_by}, the instance that has the unique key; where more
-- hangs on it than this one step, that is an error instead.
create or replace function :schema.workflow_commit(p_steps jsonb, p_ended jsonb, p_level integer default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_steps integer := jsonb_array_length(p_steps);
  v_step jsonb;
  v_one jsonb;
  v_holder text;
  v_appends boolean := false;
  v_has_effects boolean := false;
  v_positions bigint[];
  v_before integer := 0;
  v_count integer;
  v_segment smallint;
  v_effects bigint[];
  v_effects_before integer := 0;
  v_worker text;
  v_id bigint;
  v_deleted text[];
  v_answers text := '';
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was written.'
      using errcode = 'AC015';
  end if;
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    if v_step ?| '{done,key}' then v_holder := :schema.open_step(v_step ->> 'type', v_step ->> 'id', v_step); end if;
    if v_holder is not null then
      if v_steps = 1 and not v_step ? 'strict' then return jsonb_build_object('taken_by', v_holder); end if;
      raise exception 'The unique key is taken.' using errcode = 'AC013', detail = v_holder;
    end if;
    v_appends := v_appends or v_step ? 'events';
    v_has_effects := v_has_effects or v_step ? 'effects';
    -- All of a process are in the name of one worker.
    if v_worker is null and v_step ? 'worker' then v_worker := :schema.live_worker(v_step ->> 'worker'); end if;
  end loop;

  if v_appends then
    -- The events of all of them in one statement: what it checks is read, and who is to be rung looked for, only once.
    with appended as (
      insert into :schema.events (id, type, aggregate_type, aggregate_id, version, tenant, payload, metadata, occurred_at, recorded_at)
      select e ->> 'id', e ->> 'type', s ->> 'type', s ->> 'id', (s ->> 'version')::bigint + n, s ->> 'tenant', e -> 'payload',
             e -> 'metadata', v_now, v_now
        from jsonb_array_elements(p_steps) as x(s), jsonb_array_elements(s -> 'events') with ordinality as y(e, n)
      returning case when (:schema.may_break_limits(type, aggregate_type, aggregate_id, payload, metadata, null)
                           or :schema.has_swollen(bytes, payload) or octet_length(tenant) > 255)
                       and not :schema.check_event(type, aggregate_type, aggregate_id, payload, metadata,
                                                   jsonb_build_object('tenant', tenant))
                  then null else position end as position)
    select array_agg(position order by position) into v_positions from appended;
  elsif v_has_effects or jsonb_path_exists(p_steps, '$[*].timers') then
    -- Without an event nothing else makes arming readers wait for this transaction.
    perform pg_sequence_last_value(:positions_literal::regclass);
  end if;
  if v_has_effects then
    select segment into v_segment from :schema.delivery_state;
    -- The effects of all of them in one statement as well: the way to the segment is found once.
    with placed as (
      insert into :schema.deliveries (segment, id, lane, owner, key, ordered, payload, created_at, run_at, attempts,
                                      first_attempt_at, last_attempt_at, token, worker, event_id)
      select v_segment, nextval(:delivery_ids_literal::regclass), (e ->> 'lane')::integer, s ->> 'type', s ->> 'id',
             s ? 'ordered', e -> 'payload', to_timestamp((s ->> 'at')::double precision / 1000), v_now,
             (w is not null)::integer, case when w is not null then v_now end, case when w is not null then v_now end,
             case when w is not null then (s ->> 'token')::bigint end, w, s -> 'events' -> -1 ->> 'id'
        from jsonb_array_elements(p_steps) as x(s)
       cross join lateral (select case when s ? 'worker' then v_worker end as w) c
       cross join lateral jsonb_array_elements(s -> 'effects') as y(e)
      returning id)
    select array_agg(id order by id) into v_effects from placed;
  end if;

  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    v_count := coalesce(jsonb_array_length(v_step -> 'events'), 0);
    perform :schema.commit_step(v_step ->> 'type', v_step ->> 'id', (v_step ->> 'version')::bigint, v_step,
      v_positions[v_before + 1 : v_before + v_count], v_now);
    v_before := v_before + v_count;
    v_answers := v_answers || case when n > 0 then ',' else '' end || '{"position":"'
      || case when v_count = 0 then 0 else v_positions[v_before] end;
    if v_has_effects then
      v_count := coalesce(jsonb_array_length(v_step -> 'effects'), 0);
      if v_count > 0 and v_worker is not null and v_step ? 'worker' then
        v_answers := v_answers || '","claimed":["'
          || array_to_string(v_effects[v_effects_before + 1 : v_effects_before + v_count], '","') || '"]}';
      else
        v_answers := v_answers || '"}';
      end if;
      v_effects_before := v_effects_before + v_count;
    else
      v_answers := v_answers || '"}';
    end if;
  end loop;
  for n in 0 .. jsonb_array_length(p_ended) - 1 loop
    v_one := p_ended -> n;
    delete from :schema.deliveries
     where segment = (v_one ->> 'segment')::smallint and id = (v_one ->> 'id')::bigint and token = (v_one ->> 'token')::bigint
    returning id into v_id;
    if found then v_deleted := v_deleted || v_id::text; end if;
  end loop;
  return '{"segment":' || coalesce(v_segment::text, 'null') || ',"deleted":' || coalesce(to_json(v_deleted)::text, '[]')
    || ',"steps":[' || v_answers || ']}';
end
$aftercommit$;
