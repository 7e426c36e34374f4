-- grants: emit
-- The aggregate type of a captured table when none is given: the name of the table in the singular, orders → order. Null
-- where that is no name for events.
create or replace function :schema.capture_default_type(p_table text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $aftercommit$
  select case when t ~ '^[a-z][a-z0-9_]*$' and t not like 'aftercommit%' then t end
    from (select case
      when p_table ~ '[^e]ies$' then regexp_replace(p_table, 'ies$', 'y')
      when p_table ~ '(ss|x|ch|sh)es$' then regexp_replace(p_table, 'es$', '')
      when p_table ~ '[^sui]s$' then regexp_replace(p_table, 's$', '')
      else p_table end) s (t)
$aftercommit$;
