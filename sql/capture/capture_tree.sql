-- grants: emit
-- A captured table with its partitions and its inherited children.
create or replace function :schema.capture_tree(p_relation oid) returns setof oid
language sql stable set search_path = pg_catalog, pg_temp as $aftercommit$
  with recursive tree as (
    select p_relation as id
    union
    select i.inhrelid from pg_inherits i join tree t on t.id = i.inhparent)
  select t.id from tree t join pg_class c on c.oid = t.id where c.relkind in ('r', 'p')
$aftercommit$;
