-- grants: emit
-- How far the import of a table has come, its row made and locked: of two that run at once, one waits for the batch of the other.
create or replace function :schema.import_state(p_source text, out o_after text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  insert into :schema.imports (source) values (p_source) on conflict do nothing;
  select i.after_key into o_after from :schema.imports i where i.source = p_source for update;
end
$aftercommit$;
