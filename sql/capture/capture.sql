-- grants: emit
-- Turns row changes of a table into events, whoever makes them: order.created, order.updated, order.deleted, order.truncated.
-- Runs as its caller, who needs the right to make triggers on the table. Calling it again changes the options. Answers what it
-- did. `omit` names columns to leave out; `truncate` is 'event', 'deny' or 'ignore'; `each` is 'statement' or 'row', and must be
-- chosen for a table with row triggers of its own; `unchanged` makes an UPDATE that changes nothing an event.
create or replace function :schema.capture(
  relation regclass, aggregate text default null, omit text[] default '{}', truncate text default 'event',
  each text default null, unchanged boolean default false)
returns text
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
#variable_conflict use_variable
declare
  v_table record;
  v_type text;
  v_reason text;
  v_others text;
  v_keys text[];
  v_each text := coalesce(each, 'statement');
  v_own text;
begin
  select c.oid as id, c.relkind, c.relpersistence, c.relispartition, c.relname, n.nspname, format('%I.%I', n.nspname, c.relname) as name
    into v_table
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation;
  v_type := coalesce(aggregate, :schema.capture_default_type(v_table.relname));
  v_keys := :schema.capture_key_columns(v_table.id);
  select string_agg(format('%I', g.tgname), ', ' order by g.tgname) into v_others
    from pg_trigger g join pg_proc f on f.oid = g.tgfoid join pg_namespace n on n.oid = f.pronamespace
   where g.tgrelid in (select :schema.capture_tree(v_table.id)) and not g.tgisinternal and g.tgenabled <> 'D'
     and g.tgtype & 1 = 1 and g.tgtype & 2 = 0 and g.tgtype & 28 <> 0 and n.nspname <> :schema_literal;
  v_reason := case
    when v_table.id is null then 'there is no such table'
    when v_table.relkind = 'v' then 'it is a view; capture the tables behind it'
    when v_table.relkind = 'm' then 'it is a materialized view, which changes only when it is refreshed'
    when v_table.relkind = 'f' then 'it is a foreign table, which can change without this server'
    when v_table.relkind not in ('r', 'p') then 'it is no table'
    when v_table.relpersistence = 't' then 'it is a temporary table'
    when v_table.nspname in (:schema_literal, 'pg_catalog', 'information_schema') then 'it belongs to the system'
    when v_table.relispartition then format('it is a partition; capture %s instead', pg_partition_root(v_table.id)::regclass)
    when exists (select from pg_inherits i where i.inhrelid = v_table.id) then
      format('it inherits from %s; capture that table, and this one is captured with it',
        (select i.inhparent::regclass from pg_inherits i where i.inhrelid = v_table.id order by i.inhseqno limit 1))
    when coalesce(v_keys, '{}') = '{}' then 'it has no primary key, so its rows have no id; add one, or set a unique index as its replica identity'
    when v_type is null then format('its name %L gives no name for events; choose one: aggregate => ''…''', v_table.relname)
    when v_type !~ '^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$' or length(v_type) > 180 then
      format('%L is no name like order; it begins the types of the events', v_type)
    when v_type ~ '^aftercommit(\.|$)' then 'types that begin with aftercommit are its own'
    when truncate is null or truncate not in ('event', 'deny', 'ignore') then 'truncate must be ''event'', ''deny'' or ''ignore'''
    when v_each not in ('statement', 'row') then 'each must be ''statement'' or ''row'''
    when omit is null or unchanged is null then 'omit and unchanged must not be null'
    when v_keys && omit then format('a key column cannot be left out: %s', array_to_string(v_keys, ', '))
    when exists (select from unnest(omit) o (name) where not exists (
      select from pg_attribute a where a.attrelid = v_table.id and a.attname = o.name and a.attnum > 0 and not a.attisdropped)) then
      format('it has no column %s to leave out', (select string_agg(quote_ident(o.name), ', ') from unnest(omit) o (name) where not exists (
        select from pg_attribute a where a.attrelid = v_table.id and a.attname = o.name and a.attnum > 0 and not a.attisdropped)))
    when each is null and v_others is not null then
      format('it has row triggers of its own (%s). If they write to this table, choose each => ''row'', which keeps the order of '
        'events right; otherwise each => ''statement'', which is faster', v_others)
  end;
  if v_reason is not null then
    raise exception '% is not captured: %.', coalesce(v_table.name, relation::text), v_reason using errcode = 'AC017';
  end if;

  perform :schema.apply_capture(v_table.id, v_type, omit, truncate, v_each, unchanged);
  select string_agg(format('%s.%s', c.oid::regclass, a.attname), ', ') into v_own
    from :schema.capture_tree(v_table.id) t (id)
    join pg_class c on c.oid = t.id and c.oid <> v_table.id and not c.relispartition
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attislocal and a.attinhcount = 0;
  return format('%s is captured: %s.created, .updated, .deleted%s', v_table.name, v_type,
      case truncate when 'event' then ', .truncated' when 'deny' then '; TRUNCATE is denied' else '; TRUNCATE is ignored' end)
    || coalesce('; columns that only a child has are left out: ' || v_own, '')
    || coalesce((select format('; virtual columns are left out: %s', string_agg(quote_ident(a.attname), ', ' order by a.attnum))
          from pg_attribute a where a.attrelid = v_table.id and a.attgenerated = 'v' and not a.attisdropped having count(*) > 0), '');
end
$aftercommit$;
