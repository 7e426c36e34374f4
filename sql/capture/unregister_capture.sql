-- grants: emit
-- Forgets a captured table, for uncapture(), which runs as its caller. Refuses a caller who could not have captured it.
create or replace function :schema.unregister_capture(p_type text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_relation oid;
begin
  select c.oid into v_relation from :schema.captured_tables t join pg_class c on c.oid = t.relation where t.aggregate_type = p_type;
  if found and not has_table_privilege(session_user, v_relation, 'trigger') then
    raise exception 'Role % may not make triggers on %, so the table stays captured.', session_user, v_relation::regclass
      using errcode = 'AC017', hint = 'Let the owner of the table do it.';
  end if;
  delete from :schema.captured_tables t where t.aggregate_type = p_type;
end
$aftercommit$;
