-- grants: none
-- The metadata and tenant of what a statement changes, from the settings of the session. All changes of a transaction share
-- one correlation id when the session names none. Raises AC006 where the chain of causes is too long: that ends a loop
-- through a captured table, and nothing else may stop a write, so an odd setting is cut or passed over.
create or replace function :schema.capture_context(p_type text, p_table text, p_max_depth integer, out o_metadata jsonb, out o_tenant text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_depth integer := substring(current_setting('aftercommit.depth', true) from '^\d{1,9}$');
begin
  -- The maker of a trigger chooses its arguments: versions of a stream, and our own types, must not be forged by it.
  if p_type ~ '^aftercommit(\.|$)' or exists (select from :schema.stream_types s where s.aggregate_type = p_type) then
    raise exception '% cannot be captured as %, which is a stream or one of our own types; nothing was written to it.', p_table, p_type
      using errcode = 'AC017';
  end if;
  if v_depth > p_max_depth then
    raise exception 'A change of % would be event number % in a chain of causes, more than %; nothing was written to it.',
      p_table, v_depth, p_max_depth using errcode = 'AC006', hint = 'An event probably causes itself.';
  end if;
  o_metadata := jsonb_build_object('captured_from', p_table, 'correlation_id',
    coalesce(nullif(current_setting('aftercommit.correlation_id', true), ''),
      'tx-' || to_hex((extract(epoch from now()) * 1000000)::bigint) || '-' || pg_current_xact_id()::text));
  if concat(current_setting('aftercommit.user_id', true), current_setting('aftercommit.causation_id', true),
       current_setting('aftercommit.traceparent', true), current_setting('aftercommit.actor_type', true),
       current_setting('aftercommit.acting_for', true), nullif(v_depth, 0)) <> '' then
    o_metadata := o_metadata || jsonb_strip_nulls(jsonb_build_object(
      'user_id', nullif(current_setting('aftercommit.user_id', true), ''),
      'causation_id', nullif(current_setting('aftercommit.causation_id', true), ''),
      'traceparent', nullif(current_setting('aftercommit.traceparent', true), ''),
      'actor_type', nullif(current_setting('aftercommit.actor_type', true), ''),
      'acting_for', nullif(current_setting('aftercommit.acting_for', true), ''),
      'depth', nullif(v_depth, 0)));
  end if;
  o_tenant := nullif(current_setting('aftercommit.tenant', true), '');
  if length(o_tenant) > 255 then o_tenant := :schema.capture_short(o_tenant); end if;
end
$aftercommit$;
