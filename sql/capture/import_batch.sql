-- grants: emit
-- Appends the next rows of a table of events, in the order of its columns p_order, and answers how many; 0 at the end. Runs as its
-- caller, who reads the table and appends. p_columns says which column holds what: {"type": "event_type", "payload": "data"}, and
-- aggregate_type, aggregate_id, tenant, changes, previous, metadata, occurred_at where the table has them. The id of an event is
-- import:<table>:<key>, so a row that is read again appends nothing.
create or replace function :schema.import_batch(p_relation oid, p_order text[], p_columns jsonb, p_rows integer default 1000) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set plan_cache_mode = force_custom_plan as $aftercommit$
declare
  v_source text := p_relation::regclass::text;
  v_keys text[] := :schema.capture_key_columns(p_relation);
  v_problem text;
  v_has_null boolean;
  v_after text[];
  v_columns text;
  v_texts text;
  v_bound text;
  v_batch record;
begin
  v_problem := case
    when coalesce(v_keys, '{}') = '{}' then 'it has no primary key, so its events would have no ids'
    when not p_order @> v_keys then format('the order must end with its key (%s), or rows could be passed over', array_to_string(v_keys, ', '))
    when not p_columns ?& '{type,payload}' then 'the columns of type and payload must be named'
    else (
      select format('it has no column %s', string_agg(quote_ident(c.name), ', '))
        from (select unnest(p_order) union select value from jsonb_each_text(p_columns)) c (name)
       where not exists (select from pg_attribute a where a.attrelid = p_relation and a.attname = c.name and a.attnum > 0 and not a.attisdropped)
      having count(*) > 0)
  end;
  if v_problem is not null then
    raise exception '% is not imported: %.', v_source, v_problem using errcode = 'AC017';
  end if;
  v_after := :schema.import_state(v_source);
  select string_agg(format('t.%I', o.name), ', ' order by o.place), string_agg(format('t.%I::text', o.name), ', ' order by o.place),
         string_agg(format('%L::%s', v_after[o.place], format_type(a.atttypid, a.atttypmod)), ', ' order by o.place)
    into v_columns, v_texts, v_bound
    from unnest(p_order) with ordinality o (name, place)
    join pg_attribute a on a.attrelid = p_relation and a.attname = o.name;
  if v_after is null then
    -- A row without a place in the order would never be reached.
    execute format('select true from %s t where %s limit 1', v_source,
      (select string_agg(format('t.%I is null', o.name), ' or ') from unnest(p_order) o (name))) into v_has_null;
    if v_has_null then
      raise exception '% is not imported: a column of its order is null in some row.', v_source using errcode = 'AC017';
    end if;
  end if;
  execute format(
    'select array_agg(r.image order by r.place) as images, (array_agg(to_jsonb(r.key) order by r.place desc))[1] as last
       from (select row_number() over () as place, b.* from (
         select to_jsonb(t.*) as image, array[%s] as key from %s t %s order by %s limit %s) b) r',
    v_texts, v_source, case when v_after is not null then format('where (%s) > (%s)', v_columns, v_bound) else '' end, v_columns, p_rows)
    into v_batch;
  if v_batch.images is null then
    perform :schema.advance_import(v_source, null, 0);
    return 0;
  end if;
  select i.image ->> (p_columns ->> 'type') into v_problem
    from unnest(v_batch.images) i (image)
   where (i.image ->> (p_columns ->> 'type')) is null
      or (i.image ->> (p_columns ->> 'type')) !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' limit 1;
  if found then
    raise exception '% is not imported further: % is no type like order.placed.', v_source, quote_nullable(left(v_problem, 80))
      using errcode = 'AC017', hint = 'Import a view-like copy with types of that form, or a generated column.';
  end if;
  perform :schema.append_many(
    array_agg(e.id order by e.place), array_agg(e.image ->> (p_columns ->> 'type') order by e.place),
    array_agg(e.aggregate_type order by e.place), array_agg(e.aggregate_id order by e.place),
    jsonb_agg(e.image -> (p_columns ->> 'payload') order by e.place),
    jsonb_agg(jsonb_build_object('correlation_id', e.id)
      || case when jsonb_typeof(e.image -> (p_columns ->> 'metadata')) = 'object' then e.image -> (p_columns ->> 'metadata') else '{}' end
      || jsonb_build_object('imported_from', v_source) order by e.place),
    array_agg((e.image ->> (p_columns ->> 'occurred_at'))::timestamptz order by e.place),
    array_agg(jsonb_strip_nulls(jsonb_build_object('chosen', true, 'tenant', e.image ->> (p_columns ->> 'tenant')))
      || case when jsonb_typeof(e.image -> (p_columns ->> 'changes')) = 'object'
           then jsonb_build_object('changes', e.image -> (p_columns ->> 'changes')) else '{}' end
      || case when jsonb_typeof(e.image -> (p_columns ->> 'previous')) = 'object'
           then jsonb_build_object('previous', e.image -> (p_columns ->> 'previous')) else '{}' end order by e.place))
    from (
      select i.place, i.image, :schema.capture_short('import:' || v_source || ':' || :schema.capture_key(i.image, v_keys)) as id,
             case when i.image ->> (p_columns ->> 'aggregate_id') is not null then i.image ->> (p_columns ->> 'aggregate_type') end as aggregate_type,
             case when i.image ->> (p_columns ->> 'aggregate_type') is not null then i.image ->> (p_columns ->> 'aggregate_id') end as aggregate_id
        from unnest(v_batch.images) with ordinality i (image, place)) e;
  perform :schema.advance_import(v_source, array(select jsonb_array_elements_text(v_batch.last)), cardinality(v_batch.images));
  return cardinality(v_batch.images);
end
$aftercommit$;
