-- why: partitions that are split ahead of the head, the published frontier, epochs and their detection.
-- locks: none that anybody waits for; every object here is new, and the row of log_state is written by nobody yet.
-- older: keep

-- Splits the open-ended last partition while it is empty. An append never waits for more than the short lock_timeout,
-- and never fails for want of a partition: until the split succeeds, rows go into the open one. Returns what was added.
create function :schema.split_partitions() returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $aftercommit$
declare
  v_size bigint := (select partition_size from :schema.settings);
  v_open_from bigint;
  v_from bigint;
  v_head bigint := (select last_value from :schema.positions);
  v_name text;
  v_added text[] := '{}';
begin
  -- Looked at twice: another process may have split it while this one waited for the lock.
  for v_look in 1 .. 2 loop
    select coalesce(substring(pg_get_expr(c.relpartbound, c.oid) from 'FROM \(''?(\d+)')::bigint, 0) into v_open_from
      from pg_class c
     where c.oid = to_regclass(format('%I.events_open', :schema_literal));
    -- Two partitions of room ahead of the head: the split happens long before the open one is written to.
    if v_head + v_size < v_open_from then return v_added; end if;
    if v_look = 1 then
      lock table :schema.events in access exclusive mode;
    end if;
  end loop;

  if v_open_from is not null then
    if exists (select from :schema.events_open) then
      raise exception 'The open partition holds events, so it cannot be split.' using errcode = 'AC009';
    end if;
    alter table :schema.events detach partition :schema.events_open;
    drop table :schema.events_open;
  else
    v_open_from := 0;
  end if;

  v_from := v_open_from;
  loop
    v_name := format('events_%s', lpad((v_from)::text, 12, '0'));
    execute format('create table %1$I.%2$I partition of %1$I.events for values from (%3$s) to (%4$s)',
      :schema_literal, v_name, v_from, v_from + v_size);
    v_added := v_added || v_name;
    v_from := v_from + v_size;
    exit when v_head + v_size < v_from;
  end loop;
  execute format('create table %1$I.events_open partition of %1$I.events for values from (%2$s) to (maxvalue)',
    :schema_literal, v_from);
  return v_added;
end
$aftercommit$;

-- The frontier as other processes, standbys and bridges may rely on it. It never moves back within an epoch.
create function :schema.publish_frontier(p_epoch integer, p_frontier bigint, p_witness bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  update :schema.log_state
     set frontier = p_frontier, witness = greatest(witness, p_witness)
   where epoch = p_epoch and frontier < p_frontier;
  return found;
end
$aftercommit$;

-- Server, timeline and database: a history that goes on elsewhere is another history.
create function :schema.log_identity() returns text
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select format('%s/%s/%s',
    (select system_identifier from pg_control_system()),
    case when pg_is_in_recovery() then '-' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end,
    (select oid from pg_database where datname = current_database()))
$aftercommit$;

update :schema.log_state set identity = :schema.log_identity();

-- Looks whether history can have forked since the last look, and begins a new epoch if so; o_began says why. o_problem is
-- set when the log cannot be read safely at all. The order of the reads matters: the state first, the sequence last, so
-- that appends and readers at work in between only move the later values up. A suspicion is looked at again under the
-- row lock, which also decides between processes that notice together.
create function :schema.check_log(out o_epoch integer, out o_frontier bigint, out o_head bigint, out o_began text, out o_problem text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_state record;
  v_identity text := :schema.log_identity();
  v_sequence bigint;
  v_cache bigint;
  v_gone boolean;
  v_witness bigint;
  v_locked boolean := false;
begin
  select seqcache into v_cache from pg_sequence where seqrelid = :positions_literal::regclass;
  if v_cache <> 1 then
    o_problem := format('The sequence %s has CACHE %s: sessions hand out old numbers late, so events could be skipped. Run: alter sequence %s cache 1',
      :positions_literal, v_cache, :positions_literal);
  elsif pg_is_in_recovery() then
    o_problem := 'This server is a standby: its locks do not show who is appending on the primary.';
  end if;

  loop
    select * into v_state from :schema.log_state;
    v_gone := v_state.witness >= v_state.kept_from and v_state.witness > 0
      and not exists (select from :schema.events where position = v_state.witness);
    select coalesce(max(position), 0) into o_head from :schema.events;
    select case when is_called then last_value else last_value - 1 end into v_sequence from :schema.positions;

    o_began := case
      when v_state.identity <> v_identity then 'the database was restored, promoted or moved'
      when v_gone then 'events were removed'
      when v_sequence < greatest(o_head, v_state.frontier) then 'the sequence was set back'
    end;
    exit when o_began is null or v_locked or pg_is_in_recovery();
    perform from :schema.log_state for update;
    v_locked := true;
  end loop;

  if o_began is not null and v_locked then
    if v_gone and v_sequence < v_state.frontier then
      -- Numbered anew from the start: what is there now belongs to the new epoch, whatever readers saw before.
      v_state.frontier := 0;
      o_head := 0;
    elsif v_sequence < greatest(o_head, v_state.frontier) then
      perform setval(:positions_literal, greatest(o_head, v_state.frontier));
    end if;
    update :schema.log_state
       set epoch = epoch + 1, identity = v_identity, witness = 0, frontier = v_state.frontier
    returning * into v_state;
    insert into :schema.epochs (epoch, began_after, reason)
    values (v_state.epoch, greatest(o_head, v_state.frontier), o_began)
    on conflict (epoch) do nothing;
  else
    o_began := null;
    -- There is no witness yet, or retention has passed it: the newest event that is final takes its place.
    if v_state.witness < greatest(v_state.kept_from, 1) and not pg_is_in_recovery() then
      select max(position) into v_witness from :schema.events where position <= v_state.frontier;
      update :schema.log_state set witness = v_witness where epoch = v_state.epoch and witness < v_witness;
    end if;
  end if;
  o_epoch := v_state.epoch;
  o_frontier := v_state.frontier;
end
$aftercommit$;

revoke all on all functions in schema :schema from public;
