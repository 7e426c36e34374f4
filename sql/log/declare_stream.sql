-- grants: run
-- Declares that aggregates of this type are kept as streams, with versions 1, 2, … Plain events of the type that exist
-- already are refused, or adopted: they keep no version, and each stream goes on from their number.
create or replace function :schema.declare_stream(aggregate_type text, adopt boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $aftercommit$
#variable_conflict use_variable
declare
  v_type text := aggregate_type;
  v_plain boolean;
begin
  if exists (select from :schema.stream_types t where t.aggregate_type = v_type) then return false; end if;
  -- Appenders look here before they write, and keep that lock to their end. So those that did not see the declaration
  -- have ended, and new ones wait until it commits. A lock on events would come after their look, which is too late.
  lock table :schema.stream_types in access exclusive mode;
  if exists (select from :schema.captured_tables c where c.aggregate_type = v_type) then
    raise exception 'Aggregate type % is that of a captured table, whose events have no versions; it was not declared as a stream.', v_type
      using errcode = 'AC017', hint = 'Capture the table under another aggregate type first.';
  end if;
  v_plain := exists (select from :schema.events e where e.aggregate_type = v_type);
  if v_plain and not adopt then
    raise exception 'Aggregate type % has plain events already, so it was not declared as a stream.', v_type
      using errcode = 'AC007', hint = 'Pass adopt => true to go on from them.';
  end if;
  insert into :schema.stream_types (aggregate_type, adopted) values (v_type, v_plain) on conflict do nothing;
  return true;
end
$aftercommit$;
