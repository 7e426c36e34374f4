-- grants: none
-- The present names of key and left out columns, by their numbers: columns were renamed, added or dropped since the trigger
-- was made. Virtual columns are left out too, because a trigger does not see their values.
create or replace function :schema.capture_names(p_relation oid, p_numbers jsonb, out o_keys text[], out o_omit text[])
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select array(
      select a.attname::text
        from jsonb_array_elements_text(p_numbers -> 'keys') with ordinality k (number, place)
        join pg_attribute a on a.attrelid = p_relation and a.attnum = k.number::smallint
       order by k.place),
    array(
      select a.attname::text
        from pg_attribute a
       where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
         and (p_numbers -> 'omit' @> to_jsonb(a.attnum::integer) or p_numbers -> 'names' ? a.attname::text
              or a.attgenerated = 'v'))
$aftercommit$;
