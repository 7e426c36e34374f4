-- grants: none
-- Loads an instance from the version that the caller knows, as one JSON object: `version`, `position`, `generation`,
-- `completed`, `paused`, `holds` (events of the log wait for their turn), `unique_key`, `clock_ms`, `outcome` of the input,
-- `snapshot` as {version, state}, `events`, and `follows_known`: the caller knows this history, and the answer goes on from
-- there. A snapshot without a state is the beginning of a new life.
-- With p_lock the instance belongs to this transaction until it ends. An instance that does not exist yet has no row to lock,
-- so the lock is on its name. Without p_wait the answer is null where another transaction has the lock. Everything after the
-- lock is read with a new snapshot, the clock too.
-- For workflow_load and workflow_try alone, which have the planner settings that its statements need: settings of its
-- own would cost a tenth of a step.
create or replace function :schema.load_step(
  p_type text, p_id text, p_lock boolean, p_known bigint, p_known_position bigint, p_state_version integer, p_input_id text,
  p_up_to bigint, p_wait boolean)
returns text
language plpgsql as $aftercommit$
declare
  r record;
  s record;
  v_known bigint := p_known;
  v_after bigint := p_known_position;
  v_events text;
  v_outcome jsonb;
  v_clock bigint;
  v_snapshot text;
  v_holds boolean := false;
begin
  if p_lock and p_wait then
    perform pg_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended(:schema_literal, 0)));
  elsif p_lock and not pg_try_advisory_xact_lock(hashtextextended(p_type || '/' || p_id, hashtextextended(:schema_literal, 0))) then
    return null;
  end if;
  v_clock := floor(extract(epoch from clock_timestamp()) * 1000);
  if p_input_id is not null then
    select i.outcome into v_outcome from :schema.workflow_inputs i
     where i.type = p_type and i.id = p_id and i.input_id = p_input_id;
  end if;
  select * into r from :schema.workflow_instances i where i.type = p_type and i.id = p_id;
  if not found then
    return format(
      '{"version":"0","position":"0","generation":1,"completed":false,"paused":false,"holds":false,"unique_key":null,'
      '"clock_ms":%s,"outcome":%s,"snapshot":null,"events":null,"follows_known":false}',
      v_clock, coalesce(v_outcome::text, 'null'));
  end if;
  -- No step is decided for a time before the last event, also where the clock of the server went back.
  v_clock := greatest(v_clock, floor(extract(epoch from r.last_event_at) * 1000));
  if r.holds then
    v_holds := :schema.holds_events(p_type, p_id);
    if p_lock and not v_holds then
      update :schema.workflow_instances i set holds = false where i.type = p_type and i.id = p_id;
    end if;
  end if;
  -- A caller that remembers a history which was set back remembers nothing of use, also where it has gone on since.
  if v_known > r.version or v_known = r.version and v_after <> r.last_position
     or v_known > 0 and v_known < r.version and not exists (
       select from :schema.events e
        where e.aggregate_type = p_type and e.aggregate_id = p_id and e.position = v_after and e.version = v_known)
  then
    v_known := 0;
    v_after := 0;
  end if;
  if v_outcome is not null then
    -- Only what came of the input is asked for, not the state.
    v_events := :schema.workflow_events(p_type, p_id, 0, (v_outcome ->> 'from')::bigint, (v_outcome ->> 'to')::bigint);
  elsif v_known < r.version then
    select n.version, n.position, n.state::text as state into s
      from :schema.workflow_snapshots n
     where n.type = p_type and n.id = p_id and n.version > v_known and n.version <= coalesce(p_up_to, r.version)
       and (n.state is null or n.state_version = p_state_version)
     order by n.version desc
     limit 1;
    if s.version is not null then v_snapshot := format('{"version":%s%s}', s.version, ',"state":' || s.state); end if;
    v_events := :schema.workflow_events(p_type, p_id, coalesce(s.position, v_after), 1, least(r.version, p_up_to));
  end if;
  return format(
    '{"version":"%s","position":"%s","generation":%s,"completed":%s,"paused":%s,"holds":%s,"unique_key":%s,'
    '"clock_ms":%s,"outcome":%s,"snapshot":%s,"events":%s,"follows_known":%s}',
    r.version, r.last_position, r.generation, (r.completed_at is not null)::text, r.paused::text, v_holds::text,
    coalesce(to_json(r.unique_key)::text, 'null'), v_clock, coalesce(v_outcome::text, 'null'),
    coalesce(v_snapshot, 'null'), coalesce(v_events, 'null'), (v_known > 0)::text);
end
$aftercommit$;
