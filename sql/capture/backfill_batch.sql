-- grants: emit
-- Makes events of the next rows of a captured table, by the order of their keys, and answers how many; 0 at the end. Runs as its
-- caller, who must be able to read and lock the rows: a row is locked until the transaction ends, so that its event comes before
-- those of later changes.
create or replace function :schema.backfill_batch(p_relation oid, p_rows integer default 1000) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set plan_cache_mode = force_custom_plan as $aftercommit$
declare
  v_state record;
  v_keys text;
  v_texts text;
  v_after text;
  v_query text;
  v_images jsonb[];
  v_last jsonb;
begin
  select * into v_state from :schema.backfill_state(p_relation);
  if v_state.o_type is null or v_state.o_is_finished then return 0; end if;
  select string_agg(format('t.%I', k.name), ', ' order by k.place), string_agg(format('t.%I::text', k.name), ', ' order by k.place),
         string_agg(format('%L::%s', v_state.o_after[k.place], format_type(a.atttypid, a.atttypmod)), ', ' order by k.place)
    into v_keys, v_texts, v_after
    from unnest(:schema.capture_key_columns(p_relation)) with ordinality k (name, place)
    join pg_attribute a on a.attrelid = p_relation and a.attname = k.name;
  v_query := format(
    'select array_agg(r.image order by r.place), (array_agg(to_jsonb(r.key) order by r.place desc))[1]
       from (select row_number() over () as place, b.* from (
         select {image} as image, array[%s] as key from %s t %s order by %s limit %s for share of t) b) r',
    v_texts, p_relation::regclass,
    case when v_state.o_after is not null then format('where (%s) > (%s)', v_keys, v_after) else '' end, v_keys, p_rows);
  begin
    execute replace(v_query, '{image}', 'to_jsonb(t.*)') into v_images, v_last;
  exception when data_exception or program_limit_exceeded then
    execute replace(v_query, '{image}', replace(:schema.capture_image(p_relation), 'capture_value(r.', 'capture_value(t.')) into v_images, v_last;
  end;
  perform :schema.write_existing(v_state.o_type, v_images,
    case when v_last is not null then array(select jsonb_array_elements_text(v_last)) end);
  return coalesce(cardinality(v_images), 0);
end
$aftercommit$;
