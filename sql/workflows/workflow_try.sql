-- grants: run
-- Writes steps that a process decided on what it remembers, as workflow_commit does, where that is still so. One statement for
-- all of them, and no lock is waited for. Beside what workflow_commit takes, a step names `position` (of the last event that it
-- knows), `at` (the time it was decided for), `state_version` and `for_input` (the id of its input). `ask`: it knows nothing.
-- `again`: it was sent before and the answer got lost; the ids of its events tell whether it was written then.
-- Returns {clock_ms, refused, committed}. `committed` is the answer of workflow_commit for all steps that were not refused, in
-- their order. A refused step is {n} with its place and either `happened`, the position of its last event, or `found`: the answer
-- of workflow_load from what it knows, null where another transaction has the instance. A step is refused where the instance has
-- gone on, is over, paused or has events waiting, where its input has an outcome, or where `at` is not the time of this server.
create or replace function :schema.workflow_try(p_steps jsonb, p_ended jsonb, p_level integer default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
declare
  v_steps integer := jsonb_array_length(p_steps);
  v_step jsonb;
  v_type text;
  v_id text;
  v_clock bigint;
  v_known bigint;
  v_at bigint;
  v_position bigint;
  r record;
  v_fits boolean;
  v_refusal text;
  v_refused text := '';
  v_accepted jsonb;
begin
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_step := p_steps -> n;
    v_type := v_step ->> 'type';
    v_id := v_step ->> 'id';
    v_refusal := null;
    if not pg_try_advisory_xact_lock(hashtextextended(v_type || '/' || v_id, hashtextextended(:schema_literal, 0))) then
      v_refusal := '"found":null';
    else
      v_clock := floor(extract(epoch from clock_timestamp()) * 1000);
      v_known := (v_step ->> 'version')::bigint;
      v_at := (v_step ->> 'at')::bigint;
      select i.version, i.last_position, i.last_event_at, i.paused or i.holds or i.completed_at is not null as stands into r
        from :schema.workflow_instances i where i.type = v_type and i.id = v_id;
      v_fits := case when found
        then r.version = v_known and r.last_position = (v_step ->> 'position')::bigint and not r.stands
             and v_at >= floor(extract(epoch from r.last_event_at) * 1000)
        else v_known = 0 end
        and v_at between v_clock - 5000 and v_clock + 5000 and not v_step ? 'ask';
      if v_fits and v_step ? 'for_input' then
        v_fits := not exists (select from :schema.workflow_inputs i
                               where i.type = v_type and i.id = v_id and i.input_id = v_step ->> 'for_input');
      end if;
      if v_fits is not true and v_step ? 'again' then
        -- Its last event is the only one that can have this version and this id.
        select e.position into v_position from :schema.events e
         where e.aggregate_type = v_type and e.aggregate_id = v_id and e.position > (v_step ->> 'position')::bigint
           and e.version = v_known + jsonb_array_length(v_step -> 'events') and e.id = v_step -> 'events' -> -1 ->> 'id';
        if found then v_refusal := format('"happened":"%s"', v_position); end if;
      end if;
      if v_fits is not true and v_refusal is null then
        v_refusal := '"found":' || :schema.load_step(v_type, v_id, true, v_known, (v_step ->> 'position')::bigint,
          (v_step ->> 'state_version')::integer, v_step ->> 'for_input', null, false);
      end if;
    end if;
    if v_refusal is not null then
      v_refused := v_refused || format('%s{"n":%s,%s}', case when v_refused <> '' then ',' end, n, v_refusal);
      -- From the first refusal on, those that are written are gathered.
      if v_accepted is null then
        v_accepted := case when n = 0 then '[]' else jsonb_path_query_array(p_steps, format('$[0 to %s]', n - 1)::jsonpath) end;
      end if;
    elsif v_accepted is not null then
      v_accepted := v_accepted || jsonb_build_array(v_step);
    end if;
  end loop;
  v_accepted := coalesce(v_accepted, p_steps);
  return format('{"refused":[%s],"committed":%s,"clock_ms":%s}', v_refused,
    case when jsonb_array_length(v_accepted) > 0 or jsonb_array_length(p_ended) > 0
         then :schema.workflow_commit(v_accepted, p_ended, p_level) else 'null' end,
    floor(extract(epoch from clock_timestamp()) * 1000));
end
$aftercommit$;
