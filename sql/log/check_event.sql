-- grants: none
-- Refuses an event of a type that only the library has, and one that breaks a limit of the log: the size and nesting of each part, the size of all of them, the length of
-- tenant and aggregate. True otherwise, so that it can stand in a condition. Small events need no check: see may_break_limits.
-- A part costs no more than its limit: size by its header, nesting down to the limit, then the digits that numbers with an
-- exponent have as text (1e131000 is stored in ten bytes), and only then its text.
create or replace function :schema.check_event(
  p_type text, p_aggregate_type text, p_aggregate_id text, p_payload jsonb, p_metadata jsonb, p_extra jsonb)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  -- Readers pass a larger event as a dead letter (LARGEST_EVENT in src/log/event-row.ts).
  c_largest constant bigint := 16777216;
  v_limits record;
  v_part record;
  v_number numeric;
  v_bytes bigint;
  v_total bigint := 0;
begin
  if starts_with(p_type, 'aftercommit.') then
    raise exception 'Event types that begin with aftercommit. are those of the library itself; nothing was emitted.'
      using errcode = 'AC003', hint = 'To let caches go of keys, call invalidate(keys).';
  end if;
  select max_payload, max_nesting into v_limits from :schema.settings;
  if p_aggregate_type = '' or p_aggregate_id = '' or length(p_aggregate_type) > 255 or length(p_aggregate_id) > 255 then
    raise exception 'An aggregate has a type and an id of 1 to 255 characters, or neither; nothing was emitted.'
      using errcode = 'AC004';
  end if;
  if length(p_extra ->> 'tenant') > 255 then
    raise exception 'A tenant has 1 to 255 characters; nothing was emitted.' using errcode = 'AC004';
  end if;
  for v_part in
    select * from (values
      ('payload', p_payload, v_limits.max_nesting),
      ('metadata', p_metadata, v_limits.max_nesting),
      -- Values stand two levels deeper here: field → {old, new}.
      ('changes', p_extra -> 'changes', v_limits.max_nesting + 2),
      ('previous', p_extra -> 'previous', v_limits.max_nesting + 2)) as parts (name, content, levels)
     where content is not null
  loop
    -- No JSON takes eight times as much room as its text.
    if pg_column_size(v_part.content) / 8 > v_limits.max_payload then
      raise exception 'The % of % has more than % bytes of JSON text; nothing was emitted.',
        v_part.name, left(p_type, 80), v_limits.max_payload
        using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it, or raise log.max_payload and run aftercommit migrate.';
    end if;
    if jsonb_path_exists(v_part.content,
        format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', v_part.levels)::jsonpath) then
      raise exception 'The % of % nests deeper than % levels; nothing was emitted.', v_part.name, left(p_type, 80), v_part.levels
        using errcode = 'AC016', hint = 'Flatten it, or raise log.max_nesting and run aftercommit migrate.';
    end if;
    v_bytes := 0;
    if (pg_column_size(v_part.content) > 16000 or pg_column_compression(v_part.content) is not null)
       and jsonb_path_exists(v_part.content, 'strict $.** ? (!(@ >= 1e-300 && @ <= 1e300))') then
      for v_number in
        select digits::numeric
          from jsonb_path_query(v_part.content, 'strict $.** ? (@ > 1e300 || @ < -1e300 || @ < 1e-300 && @ > -1e-300)') digits
      loop
        v_bytes := v_bytes + case when abs(v_number) > 1 then length(trunc(v_number)::text) else scale(v_number) end;
        exit when v_bytes > v_limits.max_payload;
      end loop;
    end if;
    if v_bytes <= v_limits.max_payload then v_bytes := octet_length(v_part.content::text); end if;
    if v_bytes > v_limits.max_payload then
      raise exception 'The % of % has more than % bytes of JSON text; nothing was emitted.',
        v_part.name, left(p_type, 80), v_limits.max_payload
        using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it, or raise log.max_payload and run aftercommit migrate.';
    end if;
    v_total := v_total + v_bytes;
  end loop;
  if v_total > c_largest then
    raise exception 'The event % has % bytes of JSON text, and readers load events of at most %; nothing was emitted.',
      left(p_type, 80), v_total, c_largest
      using errcode = 'AC005', hint = 'Store the bulk elsewhere and refer to it.';
  end if;
  return true;
end
$aftercommit$;
