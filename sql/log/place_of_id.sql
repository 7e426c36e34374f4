-- grants: none
-- Where the event with a chosen id stands, as append answers; null where none has it. Raises when the id stands for another
-- event: without that, the event of one service would vanish because another has taken its id. Ids from before content was
-- kept have none to compare.
create or replace function :schema.place_of_id(p_id text, p_content bytea) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_known record;
begin
  select position, version, content into v_known from :schema.event_ids where id = p_id;
  if not found then return null; end if;
  if v_known.content <> p_content then
    raise exception 'The id "%" stands for another event, at position %; nothing was emitted.', p_id, v_known.position
      using errcode = 'AC017', detail = p_id, hint = 'Give each event an id of its own; repeat an event with the content it had.';
  end if;
  return concat_ws(':', v_known.position, v_known.version);
end
$aftercommit$;
