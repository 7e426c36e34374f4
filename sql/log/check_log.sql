-- grants: run
-- Looks whether history can have forked since the last look, and begins a new epoch if so; o_began says why. o_problem is
-- set when the log cannot be read safely at all. The order of the reads matters: the state first, the sequence last, so
-- that appends and readers at work in between only move the later values up. A suspicion is looked at again under the
-- row lock, which also decides between processes that notice together.
create or replace function :schema.check_log(out o_epoch integer, out o_frontier bigint, out o_head bigint, out o_began text, out o_problem text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_state record;
  v_identity text := :schema.log_identity();
  v_sequence bigint;
  v_cache bigint;
  v_events regclass := to_regclass(format('%I.events', :schema_literal));
  v_gone boolean;
  v_witness bigint;
  v_locked boolean := false;
  v_renumbered boolean;
  v_shared bigint;
  v_late bigint;
  v_kept bigint;
begin
  select seqcache into v_cache from pg_sequence where seqrelid = :positions_literal::regclass;
  if v_cache <> 1 then
    o_problem := format('The sequence %s has CACHE %s: sessions hand out old numbers late, so events could be skipped. Run: alter sequence %s cache 1',
      :positions_literal, v_cache, :positions_literal);
  elsif exists (
    select from pg_subscription_rel s
     where s.srrelid = v_events or s.srrelid in (select inhrelid from pg_inherits where inhparent = v_events)) then
    o_problem := 'A logical subscription writes this log: its events come with the positions of another server in the order of their commits, so events could be skipped. Read the log on the server where they are emitted.';
  elsif pg_is_in_recovery() then
    o_problem := 'This server is a standby: its locks do not show who is appending on the primary.';
  end if;

  loop
    select * into v_state from :schema.log_state;
    v_gone := :schema.witness_is_gone(v_state.witness, v_state.witness_id, v_state.kept_from);
    v_kept := :schema.unbroken_from();
    select coalesce(max(position), 0) into o_head from :schema.events;
    select case when is_called then last_value else last_value - 1 end into v_sequence from :schema.positions;

    o_began := case
      when v_state.identity <> v_identity then 'the database was restored, promoted or moved'
      when v_gone then 'events were removed'
      when v_sequence < greatest(o_head, v_state.frontier) then 'the sequence was set back'
      -- A gap above the head is no loss: nothing was written there.
      when v_kept > v_state.kept_from and v_kept <= greatest(o_head, v_state.frontier) + 1 then 'a partition was removed'
    end;
    exit when o_began is null or v_locked or pg_is_in_recovery();
    perform from :schema.log_state for update;
    v_locked := true;
  end loop;

  if o_began is not null and v_locked then
    -- Positions that were final and were given out once more since.
    if v_gone or v_sequence < v_state.frontier then
      v_late := :schema.first_late(v_state.frontier, v_state.published_at);
    end if;
    v_renumbered := v_gone and (v_sequence < v_state.frontier
      or v_late is not null and not exists (select from :schema.events where position < v_late));
    -- What both histories surely share. After a restore or promotion that is what was published as final: the head may
    -- hold events of the new history already.
    v_shared := case
      when v_renumbered then 0
      when v_late is not null then v_late - 1
      when v_gone or v_state.identity <> v_identity then v_state.frontier
      else greatest(o_head, v_state.frontier)
    end;
    if not v_renumbered and v_sequence < greatest(o_head, v_state.frontier) then
      perform setval(:positions_literal, greatest(o_head, v_state.frontier));
    end if;
    -- For verify: which events came after the frontier had passed their positions.
    if v_late is not null and not v_renumbered then
      insert into :schema.frontier_marks (at, frontier) values (v_state.published_at, v_state.frontier) on conflict do nothing;
    end if;
    update :schema.log_state
       set epoch = epoch + 1, identity = v_identity, witness = 0, witness_id = '', published_at = clock_timestamp(),
           frontier = case when v_renumbered or v_late is not null then v_shared else frontier end,
           -- What was removed is lost for every reader that had not come so far.
           kept_from = case
             when v_renumbered or v_late is not null then kept_from
             else greatest(kept_from, case when v_gone then frontier + 1 end,
                           case when v_kept <= greatest(o_head, frontier) + 1 then v_kept end)
           end
    returning * into v_state;
    insert into :schema.epochs (epoch, began_after, reason)
    values (v_state.epoch, v_shared, o_began)
    on conflict (epoch) do nothing;
    -- Checkpoints in this database are part of the same history as its events, unless that was numbered anew or somebody
    -- moved one beyond it: they go on.
    -- The new term keeps a process that still remembers the other history from writing over them.
    update :schema.subscription_partitions
       set term = term + 1, owner = null, clean = true,
           epoch = case when v_renumbered or position > greatest(v_sequence, o_head) or position >= v_late
                     then epoch else v_state.epoch end;
    -- What a process believes to hold may belong to the other history: each lease ends, and with it what names it. Claims
    -- of work that was done in the other history only would be held for as long as their worker lives.
    update :schema.processes set lease = null, lease_until = null where lease is not null;
    update :schema.deliveries d
       set token = null, worker = null, alone = false, attempts = greatest(d.attempts - 1, 0)
     where (d.segment, d.id) in (select c.segment, c.id from :schema.deliveries c where c.token is not null for update skip locked);
  else
    o_began := null;
    -- There is no witness yet, or retention has passed it: the newest event that is final takes its place.
    if v_state.witness < greatest(v_state.kept_from, 1) and not pg_is_in_recovery() then
      select max(position) into v_witness from :schema.events where position <= v_state.frontier;
      update :schema.log_state
         set witness = v_witness, witness_id = (select id from :schema.events where position = v_witness)
       where epoch = v_state.epoch and witness < v_witness;
    end if;
  end if;
  o_epoch := v_state.epoch;
  o_frontier := v_state.frontier;
end
$aftercommit$;
