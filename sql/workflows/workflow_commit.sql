-- grants: run
-- Writes everything that follows from inputs, as [type, id, version, step] each, and deletes deliveries that ended, as
-- [segment, id, token] each: all of it, or nothing. The caller holds the locks of workflow_load. Returns the ids that were
-- deleted, then the position of the last event of each step, with the effects that are claimed already, one a line; or
-- 'taken:' and the instance that has the unique key. Where more hangs on it than this one step, that is an error instead.
-- In a step `events` are [id, type, payload, metadata]; `done` is the delivery that brought its input: where its claim was
-- lost, nothing is written. p_level as in append.
create or replace function :schema.workflow_commit(p_steps jsonb, p_ended jsonb, p_level integer default null) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp
:index_lookups as $aftercommit$
declare
  v_now timestamptz := clock_timestamp();
  v_steps integer := jsonb_array_length(p_steps);
  v_one jsonb;
  v_holder text;
  v_appends boolean := false;
  v_positions bigint[];
  v_before integer := 0;
  v_count integer;
  v_id bigint;
  v_segment smallint;
  v_worker text;
  v_deleted text;
  v_all text := '';
begin
  if p_level < :breaks_older then
    raise exception 'The schema was migrated by a newer aftercommit, which processes of this version must not write to; nothing was written.'
      using errcode = 'AC015';
  end if;
  -- Counting costs less than a query over the elements.
  for n in 0 .. v_steps - 1 loop
    v_one := p_steps -> n;
    if v_one -> 3 ?| '{done,key}' then v_holder := :schema.open_step(v_one ->> 0, v_one ->> 1, v_one -> 3); end if;
    if v_holder is not null then
      if v_steps = 1 and not v_one -> 3 ? 'strict' then return 'taken:' || v_holder; end if;
      raise exception 'The unique key is taken.' using errcode = 'AC013', detail = v_holder;
    end if;
    v_appends := v_appends or v_one -> 3 ? 'events';
    -- All of a process are in the name of one worker.
    if v_worker is null and v_one -> 3 ? 'worker' then v_worker := :schema.live_worker(v_one -> 3 ->> 'worker'); end if;
  end loop;

  if v_appends then
    -- The events of all of them in one statement: what it checks is read, and who is to be rung looked for, only once.
    with appended as (
      insert into :schema.events (id, type, aggregate_type, aggregate_id, version, tenant, payload, metadata, occurred_at, recorded_at)
      select e ->> 0, e ->> 1, s ->> 0, s ->> 1, (s ->> 2)::bigint + n, s -> 3 ->> 'tenant', e -> 2, e -> 3, v_now, v_now
        from jsonb_array_elements(p_steps) as x(s), jsonb_array_elements(s -> 3 -> 'events') with ordinality as y(e, n)
      returning position)
    select array_agg(position order by position) into v_positions from appended;
  end if;

  select segment into v_segment from :schema.delivery_state;
  for n in 0 .. v_steps - 1 loop
    v_one := p_steps -> n;
    v_count := coalesce(jsonb_array_length(v_one -> 3 -> 'events'), 0);
    v_all := v_all || e'\n' || concat_ws('|',
      case when v_count = 0 then 0 else v_positions[v_before + v_count] end::text,
      :schema.commit_step(v_one ->> 0, v_one ->> 1, (v_one ->> 2)::bigint, v_one -> 3,
        v_positions[v_before + 1 : v_before + v_count], v_now, v_segment, case when v_one -> 3 ? 'worker' then v_worker end));
    v_before := v_before + v_count;
  end loop;
  for n in 0 .. jsonb_array_length(p_ended) - 1 loop
    v_one := p_ended -> n;
    delete from :schema.deliveries
     where segment = (v_one ->> 0)::smallint and id = (v_one ->> 1)::bigint and token = (v_one ->> 2)::bigint
    returning id into v_id;
    if found then v_deleted := concat_ws(',', v_deleted, v_id); end if;
  end loop;
  return coalesce(v_deleted, '') || v_all;
end
$aftercommit$;
