-- grants: emit
-- Notes that a table is captured, for capture(), which runs as its caller. Refuses an aggregate type that has another source of
-- events, and a caller who may not make triggers on the table.
create or replace function :schema.register_capture(
  p_relation oid, p_type text, p_omit text[], p_truncate text, p_each text, p_unchanged boolean)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_other regclass;
begin
  if not has_table_privilege(session_user, p_relation, 'trigger') then
    raise exception 'Role % may not make triggers on %, so the table is not captured.', session_user, p_relation::regclass
      using errcode = 'AC017', hint = 'Let the owner of the table capture it.';
  end if;
  if exists (select from :schema.stream_types s where s.aggregate_type = p_type)
     or exists (select from :schema.workflow_instances w where w.type = p_type) then
    raise exception 'Aggregate type % has versions, as a declared stream or a workflow, so % cannot write its events.',
      p_type, p_relation::regclass using errcode = 'AC017', hint = 'Choose another: aggregate => ''…''.';
  end if;
  select t.relation into v_other from :schema.captured_tables t
    join pg_class c on c.oid = t.relation
   where t.aggregate_type = p_type and t.relation <> p_relation;
  if found then
    raise exception 'Aggregate type % is that of the captured table %, so % is not captured.', p_type, v_other, p_relation::regclass
      using errcode = 'AC017', hint = 'Choose another: aggregate => ''…''.';
  end if;
  delete from :schema.captured_tables t
   using pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.oid = p_relation
     and (t.relation = p_relation or t.aggregate_type = p_type or t.table_schema = n.nspname and t.table_name = c.relname);
  insert into :schema.captured_tables (aggregate_type, relation, table_schema, table_name, omit, omit_numbers, on_truncate, each, unchanged)
  select p_type, c.oid, n.nspname, c.relname, p_omit,
         array(select a.attnum from pg_attribute a where a.attrelid = c.oid and a.attname = any (p_omit) and not a.attisdropped),
         p_truncate, p_each, p_unchanged
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.oid = p_relation;
end
$aftercommit$;
