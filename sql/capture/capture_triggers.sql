-- grants: emit
-- The triggers that a captured table needs, on itself and on every partition and inherited child, with the statement that
-- makes each and whether it is there as it should be. A child with columns of its own is captured without them.
create or replace function :schema.capture_triggers(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns table (relation oid, name text, statement text, is_there boolean)
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with root as (
    select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, :schema.capture_key_columns(c.oid) as keys
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.oid = p_relation),
  tables as (
    select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, c.relispartition, c.relnatts, o.omit,
           jsonb_build_object(
             'keys', (select jsonb_agg(a.attnum::integer order by k.place)
                        from unnest(root.keys) with ordinality k (key, place)
                        join pg_attribute a on a.attrelid = c.oid and a.attname = k.key),
             'omit', (select coalesce(jsonb_agg(a.attnum::integer order by a.attnum), '[]')
                        from pg_attribute a
                       where a.attrelid = c.oid and a.attname = any (o.omit) and not a.attisdropped),
             'names', to_jsonb(p_omit)) as numbers
      from root
     cross join :schema.capture_tree(root.id) t (id)
      join pg_class c on c.oid = t.id
      join pg_namespace n on n.oid = c.relnamespace
     cross join lateral (
       select array(
         select a.attname::text
           from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and (a.attname = any (p_omit) or a.attgenerated = 'v' or not exists (
              select from pg_attribute r
               where r.attrelid = root.id and r.attname = a.attname and r.attnum > 0 and not r.attisdropped))
          order by a.attnum)) o (omit)),
  wanted as (
    select t.id, format('%s_%s', left(:schema_literal, 50), e.event) as name, e.event,
           format('after %s on %s referencing %s for each statement', e.event, t.name, e.rows) as part, 'capture_rows' as function,
           array[p_type, root_keys.keys::text, t.omit::text, t.relnatts::text, t.numbers::text, p_unchanged::text, root_keys.name] as args
      from tables t
     cross join (select keys, name from root) root_keys
     cross join (values ('insert', 'new table as new_rows'), ('update', 'old table as old_rows new table as new_rows'),
                   ('delete', 'old table as old_rows')) e (event, rows)
     where p_each = 'statement'
     union all
    -- Triggers of a row fire in the order of their names, and a partition has those of its parent. Nothing sorts before "!".
    select t.id, format('!%s_row', left(:schema_literal, 50)), 'row',
           format('after insert or update or delete on %s for each row', t.name), 'capture_row',
           array[p_type, root_keys.keys::text, t.omit::text, t.relnatts::text, t.numbers::text, p_unchanged::text, root_keys.name]
      from tables t
     cross join (select keys, name from root) root_keys
     where p_each = 'row' and not t.relispartition
     union all
    select t.id, format('%s_truncate', left(:schema_literal, 50)), 'truncate',
           format('after truncate on %s for each statement', t.name), 'capture_truncate',
           array[p_type, p_truncate, (select name from root)]
      from tables t
     where p_truncate <> 'ignore')
  select w.id, w.name,
         format('create or replace trigger %I %s execute function %I.%I(%s)', w.name, w.part, :schema_literal, w.function,
           (select string_agg(quote_literal(a.arg), ', ' order by a.place) from unnest(w.args) with ordinality a (arg, place))),
         exists (
           select from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
            where g.tgrelid = w.id and g.tgname = w.name and g.tgenabled in ('O', 'A') and f.proname = w.function
              and n.nspname = :schema_literal
              and g.tgargs = (select string_agg(convert_to(a.arg, getdatabaseencoding()) || '\x00'::bytea, ''::bytea order by a.place)
                                from unnest(w.args) with ordinality a (arg, place)))
    from wanted w
   order by w.id, w.name
$aftercommit$;
