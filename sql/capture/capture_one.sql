-- grants: none
-- Writes what one changed row means: one event, none for an UPDATE that changed nothing, or deleted and created for a
-- changed key. Takes the arguments of the trigger. An image names columns that could not be read under the empty name, which
-- no column can have.
create or replace function :schema.capture_one(p_relation oid, p_args text[], p_old jsonb, p_new jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_type text := p_args[0];
  v_keys text[] := p_args[1];
  v_omit text[] := p_args[2];
  v_old jsonb;
  v_new jsonb;
  v_old_key text;
  v_new_key text;
  v_changes jsonb;
  v_lost text[] := '{}';
  v_max_payload bigint;
  v_max_depth integer;
  v_columns smallint;
  v_metadata jsonb;
  v_tenant text;
begin
  select least(s.max_payload, 3000000), s.max_depth, c.relnatts into v_max_payload, v_max_depth, v_columns
    from :schema.settings s, pg_class c where c.oid = p_relation;
  if v_columns <> p_args[3]::smallint or not coalesce(p_new, p_old) ?& (v_keys || v_omit) then
    select * into v_keys, v_omit from :schema.capture_names(p_relation, p_args[4]::jsonb);
  end if;
  select * into v_metadata, v_tenant from :schema.capture_context(v_type, p_args[6], v_max_depth);
  v_old := p_old - v_omit;
  v_new := p_new - v_omit;
  v_old_key := :schema.capture_key(p_old, v_keys);
  v_new_key := :schema.capture_key(p_new, v_keys);
  if p_old ? '' or p_new ? '' then
    v_lost := array(select jsonb_array_elements_text(coalesce(p_old -> '', '[]') || coalesce(p_new -> '', '[]')));
    v_old := v_old - '' - v_lost;
    v_new := v_new - '' - v_lost;
  end if;
  if :schema.capture_is_large(v_old, v_max_payload) or :schema.capture_is_large(v_new, v_max_payload) then
    v_lost := v_lost || coalesce(:schema.capture_oversized(v_old, v_new, v_keys, v_max_payload), '{}');
    v_old := v_old - v_lost;
    v_new := v_new - v_lost;
  end if;
  if v_lost <> '{}' then v_metadata := v_metadata || jsonb_build_object('omitted', to_jsonb(v_lost)); end if;

  if v_old_key = v_new_key then
    select jsonb_object_agg(c.key, jsonb_build_object('old', v_old -> c.key, 'new', c.value)) into v_changes
      from jsonb_each(v_new) c
     where c.value is distinct from v_old -> c.key;
    if v_changes is null and v_lost = '{}' and not p_args[5]::boolean then return; end if;
    insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
    values (:schema.new_id(), v_type || '.updated', v_type, v_new_key, v_tenant, v_new, coalesce(v_changes, '{}'), v_old,
      v_metadata, clock_timestamp());
    return;
  end if;
  if v_old is not null then
    insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
    values (:schema.new_id(), v_type || '.deleted', v_type, v_old_key, v_tenant, v_old,
      case when v_new is null then v_metadata else v_metadata || jsonb_build_object('key_changed_to', v_new_key) end,
      clock_timestamp());
  end if;
  if v_new is not null then
    insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
    values (:schema.new_id(), v_type || '.created', v_type, v_new_key, v_tenant, v_new,
      case when v_old is null then v_metadata else v_metadata || jsonb_build_object('key_changed_from', v_old_key) end,
      clock_timestamp());
  end if;
end
$aftercommit$;
