-- grants: emit
-- The key columns of a table, in the order of the key: the primary key, else the index of its replica identity. Null where
-- there is neither.
create or replace function :schema.capture_key_columns(p_relation oid) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  select array(
      select a.attname::text
        from unnest(i.indkey::smallint[]) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
       where k.place <= i.indnkeyatts
       order by k.place)
    from pg_index i
   where i.indrelid = p_relation and (i.indisprimary or i.indisreplident and i.indisunique)
   order by i.indisprimary desc
   limit 1
$aftercommit$;
