-- grants: none
-- Writes what follows from one input: the instance, snapshots, timers, and what is kept of the input. Its events have these
-- positions; its effects are written already. A caller in REPEATABLE READ may decide on a snapshot that is older than its
-- lock: every insert that can meet a newer row names its conflict, so the caller gets 40001, which is repeated, and not 23505.
create or replace function :schema.commit_step(
  p_type text, p_id text, p_version bigint, p jsonb, p_positions bigint[], p_now timestamptz)
returns void
language plpgsql as $aftercommit$
declare
  v_count integer := coalesce(cardinality(p_positions), 0);
  v_last bigint := p_positions[v_count];
  v_base bigint;
  v_letter bigint;
  v_letters bigint[];
  v_timer jsonb;
  v_at timestamptz;
  v_in_order boolean;
begin
  if p ? 'continues' then
    v_base := case when (p ->> 'continues')::integer = 0 then 0 else p_positions[(p ->> 'continues')::integer] end;
    insert into :schema.workflow_snapshots (type, id, version, position, state_version)
    values (p_type, p_id, p_version + (p ->> 'continues')::integer, v_base, 0)
    on conflict (type, id, version) do nothing;
  end if;
  if p ? 'state' then
    v_base := v_last;
    insert into :schema.workflow_snapshots (type, id, version, position, state_version, state)
    values (p_type, p_id, p_version + v_count, v_last, (p ->> 'state_version')::integer, p -> 'state')
    on conflict (type, id, version) do nothing;
    delete from :schema.workflow_snapshots
     where type = p_type and id = p_id and state is not null
       and version < (select min(k.version)
                        from (select version from :schema.workflow_snapshots
                               where type = p_type and id = p_id and state is not null
                               order by version desc limit (p ->> 'keep')::integer) k);
  end if;

  if v_count > 0 and p_version = 0 then
    if exists (select from :schema.stream_types where aggregate_type = p_type) then
      raise exception 'Workflow type % is a declared stream.', p_type using errcode = 'AC011';
    end if;
    insert into :schema.workflow_instances (type, id, version, generation, unique_key, created_at, last_event_at, last_position,
                                            completed_at, needed_after)
    values (p_type, p_id, v_count, 1 + (p ? 'continues')::integer, case when not p ? 'completed' then p ->> 'key' end, p_now, p_now, v_last,
            case when p ? 'completed' then p_now end, coalesce(v_base, p_positions[1] - 1))
    on conflict (type, id) do nothing;
    if not found then
      raise exception 'Workflow %/% was changed meanwhile.', p_type, p_id using errcode = '40001';
    end if;
  elsif v_count > 0 then
    update :schema.workflow_instances i
       set version = p_version + v_count,
           generation = i.generation + (p ? 'continues')::integer,
           unique_key = case when p ? 'completed' then null else coalesce(p ->> 'key', i.unique_key) end,
           last_event_at = p_now,
           last_position = v_last,
           completed_at = case when p ? 'completed' then p_now end,
           needed_after = coalesce(v_base, i.needed_after)
     where i.type = p_type and i.id = p_id and i.version = p_version;
    if not found then
      raise exception 'Workflow %/% was changed meanwhile.', p_type, p_id using errcode = '40001';
    end if;
  end if;

  if p ? 'timers_over' then
    with gone as (
      delete from :schema.deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key is not null
         -- An input that waited for its instance to be resumed is for the next life as well.
         and (p ? 'completed' or not payload ? 'held')
      returning letter)
    select array_agg(letter) into v_letters from gone where letter is not null;
    update :schema.letters l
       set status = 'discarded', who = 'workflow ' || p_type, reason = 'the workflow is over', changed_at = p_now
     where l.kind = any (case when p ? 'effects_over' then '{timer,effect}' else '{timer}' end::text[])
       and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
       and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
       and (p ? 'completed' or not coalesce(l.delivery -> 'payload' ? 'held', false));
  elsif p ? 'gone' then
    for n in 0 .. jsonb_array_length(p -> 'gone') - 1 loop
      -- With the key as well: the plan may have been made when no index was better than another.
      delete from :schema.deliveries_0
       where lane = (p ->> 'timer_lane')::integer and key = p_id and unique_key = p -> 'gone' ->> n
      returning letter into v_letter;
      if v_letter is not null then v_letters := v_letters || v_letter; end if;
    end loop;
    -- A dead letter of a timer that was replaced or cancelled is not to fire it again. There is hardly ever one.
    if exists (select from :schema.letters where kind = 'timer' and owner = p_type and key = p_id) then
      update :schema.letters l
         set status = 'discarded', who = 'workflow ' || p_type, reason = 'the timer was replaced or cancelled', changed_at = p_now
       where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
         and (l.status = 'dead' or l.placed is null or l.id = any (v_letters))
         and l.delivery ->> 'unique_key' = any (array(select jsonb_array_elements_text(p -> 'gone')));
    end if;
  end if;
  if p ? 'completed' then
    delete from :schema.workflow_keys k where k.type = p_type and k.id = p_id and k.unique_key = coalesce(p ->> 'key', p ->> 'held_key');
  end if;
  if p ? 'timers' then
    v_at := to_timestamp((p ->> 'at')::double precision / 1000);
    -- One by one: a statement over all of them takes longer for the few there are.
    for n in 0 .. jsonb_array_length(p -> 'timers') - 1 loop
      v_timer := p -> 'timers' -> n;
      v_in_order := coalesce(v_timer -> 'payload' ->> 'held' = 'in order', false);
      -- It comes again and has a dead letter already, which is to be redriven or discarded.
      continue when v_in_order and exists (
        select from :schema.letters l
         where l.kind = 'timer' and l.owner = p_type and l.key = p_id and l.status in ('dead', 'redriving')
           and l.delivery ->> 'unique_key' = v_timer ->> 'unique_key');
      insert into :schema.deliveries_0 (segment, id, lane, owner, key, ordered, unique_key, payload, created_at, run_at, event_id)
      values (0, nextval(:delivery_ids_literal::regclass), (p ->> 'timer_lane')::integer, p_type, p_id, v_in_order,
              v_timer ->> 'unique_key', v_timer -> 'payload', v_at, (v_timer ->> 'due')::timestamptz,
              p -> 'events' -> -1 ->> 'id')
      on conflict do nothing;
      if v_in_order then
        update :schema.workflow_instances i set holds = true where i.type = p_type and i.id = p_id and not i.holds;
      end if;
    end loop;
  end if;

  if p ? 'input_id' then
    insert into :schema.workflow_inputs (type, id, input_id, outcome, position)
    values (p_type, p_id, p ->> 'input_id', p -> 'outcome', (p ->> 'input_position')::bigint)
    on conflict do nothing;
  end if;
  if p ? 'seen' then
    insert into :schema.input_observations (type, id, input_id, input_type, input, redacted, outcome, rejection, version, events, decided_at, keep_until)
    values (p_type, p_id, p -> 'seen' ->> 'input_id', p -> 'seen' ->> 'input_type', p -> 'seen' -> 'input',
            (p -> 'seen' ->> 'redacted')::boolean, p -> 'seen' ->> 'outcome', p -> 'seen' -> 'rejection', p_version, v_count,
            to_timestamp((p -> 'seen' ->> 'decided_at')::double precision / 1000),
            p_now + make_interval(secs => (p -> 'seen' ->> 'keep_seconds')::double precision));
  end if;
end
$aftercommit$;
