-- grants: emit
-- Notes how far the import of a table has come; without a key it is finished, until its table has more rows.
create or replace function :schema.advance_import(p_source text, p_after text[], p_rows integer) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
  update :schema.imports i
     set after_key = coalesce(p_after, i.after_key), rows = i.rows + p_rows,
         finished_at = case when p_after is null then clock_timestamp() end
   where i.source = p_source
$aftercommit$;
