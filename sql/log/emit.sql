-- grants: emit
-- Emits an event from SQL, in the transaction of the caller, and returns its position. User, cause and tenant come from the
-- session settings aftercommit.*, where '' counts as unset; the parameter `tenant` wins over its setting. `previous` is the
-- image before the change.
-- An event with a payload and nothing else takes a short way: one expression finds it without fault, and append() writes it
-- with what the settings of the session add. The long way names the fault, and builds metadata and extras.
create or replace function :schema.emit(
  type text, aggregate_type text, aggregate_id text, payload jsonb,
  changes jsonb default null, metadata jsonb default null, id text default null, occurred_at timestamptz default null,
  previous jsonb default null, tenant text default null)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_new text;
begin
  if coalesce(changes, previous, metadata) is null and id is null and coalesce(tenant, '') = ''
     and type ~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' and length(type) <= 200
     and (aggregate_type is null) = (aggregate_id is null) then
    v_new := :schema.new_id();
    return split_part(:schema.append(v_new, type, aggregate_type, aggregate_id, payload,
      ('{"correlation_id": "' || v_new || '"}')::jsonb, occurred_at), ':', 1)::bigint;
  end if;

  declare
    v_id text := coalesce(id, :schema.new_id());
    v_metadata jsonb := coalesce(metadata, '{}');
    v_depth integer := coalesce(nullif(current_setting('aftercommit.depth', true), '')::integer, 0);
    v_tenant text := coalesce(nullif(tenant, ''), nullif(current_setting('aftercommit.tenant', true), ''));
    v_extra jsonb;
  begin
    if type is null or type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' or length(type) > 200 then
      raise exception 'Event type % is not a dotted lower-case name like order.placed, so nothing was emitted.', quote_nullable(left(type, 80))
        using errcode = 'AC003';
    end if;
    if (aggregate_type is null) <> (aggregate_id is null) then
      raise exception 'An aggregate has a type and an id of 1 to 255 characters, or neither; nothing was emitted.'
        using errcode = 'AC004';
    end if;
    if v_id = '' or length(v_id) > 255 then
      raise exception 'An event id has 1 to 255 characters; nothing was emitted.' using errcode = 'AC004';
    end if;
    if jsonb_typeof(previous) not in ('object', 'null') then
      raise exception 'previous must be a JSON object; nothing was emitted.' using errcode = 'AC004';
    end if;
    if jsonb_typeof(v_metadata) <> 'object' then
      raise exception 'metadata must be a JSON object; nothing was emitted.' using errcode = 'AC004';
    end if;
    v_depth := greatest(v_depth, coalesce((v_metadata ->> 'depth')::integer, 0));
    if v_depth > 0 and v_depth > (select s.max_depth from :schema.settings s) then
      raise exception '% would be event number % in a chain of causes, more than %; nothing was emitted.',
        type, v_depth, (select s.max_depth from :schema.settings s) using errcode = 'AC006', hint = 'An event probably causes itself.';
    end if;

    v_metadata := jsonb_strip_nulls(jsonb_build_object(
        'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
        'correlation_id', coalesce(nullif(current_setting('aftercommit.correlation_id', true), ''), v_id),
        'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
        'traceparent', nullif(current_setting('aftercommit.traceparent', true), '')))
      || v_metadata
      || jsonb_build_object('depth', v_depth);
    v_extra := jsonb_strip_nulls(jsonb_build_object(
      'chosen', case when id is not null then true end,
      'tenant', v_tenant));
    if changes is not null then
      v_extra := v_extra || jsonb_build_object('changes', changes);
    end if;
    if jsonb_typeof(previous) = 'object' then
      v_extra := v_extra || jsonb_build_object('previous', previous);
    end if;
    return split_part(:schema.append(v_id, type, aggregate_type, aggregate_id, payload, v_metadata, occurred_at,
      nullif(v_extra, '{}')), ':', 1)::bigint;
  end;
end
$aftercommit$;
