-- grants: emit
-- Captured tables with what has become of each: the table it is now, after a rename or when it was dropped and made again
-- (null where it is gone), the columns that are left out under their present names, and the triggers that are missing or
-- differ, with the statements that make them.
create or replace function :schema.captured()
returns table (aggregate_type text, table_name text, relation oid, omit text[], truncate text, each text, unchanged boolean,
  captured_at timestamptz, missing text[], statements text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $aftercommit$
  select t.aggregate_type, case when c.oid is null then format('%I.%I', t.table_schema, t.table_name) else format('%I.%I', n.nspname, c.relname) end,
         c.oid, o.omit, t.on_truncate, t.each, t.unchanged, t.captured_at,
         coalesce(g.missing, '{}'), coalesce(g.statements, '{}')
    from :schema.captured_tables t
    left join pg_class c on c.oid = coalesce(
      (select r.oid from pg_class r where r.oid = t.relation),
      to_regclass(format('%I.%I', t.table_schema, t.table_name)))
    left join pg_namespace n on n.oid = c.relnamespace
   cross join lateral (
     select array(
       select unnest(t.omit)
        union
       select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and c.oid = t.relation and a.attnum = any (t.omit_numbers) and not a.attisdropped
        order by 1)) o (omit)
    left join lateral (
      select array_agg(format('%s on %s', w.name, w.relation::regclass)) as missing, array_agg(w.statement) as statements
        from :schema.capture_triggers(c.oid, t.aggregate_type, o.omit, t.on_truncate, t.each, t.unchanged) w
       where not w.is_there) g on true
   order by t.aggregate_type
$aftercommit$;
