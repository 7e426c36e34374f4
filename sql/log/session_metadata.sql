-- grants: none
-- Metadata of an event, completed from the settings of the session: what the emitter gave wins. A correlation id that is the
-- event's own id was not given, it only begins a chain. Raises AC006 where the chain of causes is too long.
create or replace function :schema.session_metadata(p_id text, p_metadata jsonb) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_depth integer := nullif(substring(current_setting('aftercommit.depth', true) from '^\d{1,9}$')::integer, 0);
  v_session jsonb := jsonb_strip_nulls(jsonb_build_object(
    'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
    'correlation_id', nullif(current_setting('aftercommit.correlation_id', true), ''),
    'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
    'traceparent', nullif(current_setting('aftercommit.traceparent', true), ''),
    'actor_type', nullif(current_setting('aftercommit.actor_type', true), ''),
    'acting_for', nullif(current_setting('aftercommit.acting_for', true), ''),
    'depth', v_depth));
begin
  if v_depth > (select s.max_depth from :schema.settings s) then
    raise exception 'This would be event number % in a chain of causes, more than the limit; nothing was emitted.', v_depth
      using errcode = 'AC006', hint = 'An event probably causes itself.';
  end if;
  return v_session || case when v_session ? 'correlation_id' and p_metadata ->> 'correlation_id' = p_id
    then p_metadata - 'correlation_id' else p_metadata end;
end
$aftercommit$;
