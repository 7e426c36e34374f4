-- grants: emit
-- The expression that reads a row r which to_jsonb refuses, column by column. Columns that cannot be read at all are named
-- under the empty name, which no column can have.
create or replace function :schema.capture_image(p_relation oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select format('(select coalesce(jsonb_object_agg(c.name, c.value) filter (where c.value is not null), ''{}'')
      || case when bool_or(c.value is null) then jsonb_build_object('''', jsonb_agg(c.name) filter (where c.value is null)) else ''{}'' end
    from (values %s) c (name, value))',
    string_agg(format('(%L, %I.capture_value(r.%I))', a.attname, :schema_literal, a.attname), ', ' order by a.attnum))
    from pg_attribute a
   where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
$aftercommit$;
