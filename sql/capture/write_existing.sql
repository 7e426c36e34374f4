-- grants: emit
-- Writes the events of existing rows of a captured table, and how far the backfill has come, in one transaction. The rows come
-- from backfill_batch, which reads them as its caller.
create or replace function :schema.write_existing(p_type text, p_images jsonb[], p_after text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_table record;
  v_keys text[];
  v_settings record;
  v_metadata jsonb;
  v_tenant text;
begin
  select c.relation, c.table_name, c.omit into v_table from :schema.captured() c where c.aggregate_type = p_type;
  if not found or not has_table_privilege(session_user, v_table.relation, 'select') then
    raise exception 'Role % may not backfill %, so nothing was emitted.', session_user, p_type using errcode = 'AC017';
  end if;
  v_keys := :schema.capture_key_columns(v_table.relation);
  select least(s.max_payload, 3000000) as max_payload, s.max_depth into v_settings from :schema.settings s;
  select * into v_metadata, v_tenant from :schema.capture_context(p_type, v_table.table_name, v_settings.max_depth);
  insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
  select :schema.new_id(), p_type || '.existing', p_type, :schema.capture_key(p.image, v_keys), v_tenant, p.image - p.lost,
         case when p.lost = '{}' then v_metadata else v_metadata || jsonb_build_object('omitted', to_jsonb(p.lost)) end,
         clock_timestamp()
    from (select i.image - v_table.omit - '' as image, i.place,
                 array(select jsonb_array_elements_text(coalesce(i.image -> '', '[]')))
                 || case when :schema.capture_is_large(i.image - v_table.omit, v_settings.max_payload)
                      then coalesce(:schema.capture_oversized(null, i.image - v_table.omit - '', v_keys, v_settings.max_payload), '{}')
                      else '{}' end as lost
            from unnest(p_images) with ordinality i (image, place)) p
   order by p.place;
  update :schema.backfills b
     set rows = b.rows + coalesce(cardinality(p_images), 0), after_key = coalesce(p_after, b.after_key),
         finished_at = case when p_after is null then clock_timestamp() end
   where b.aggregate_type = p_type;
end
$aftercommit$;
