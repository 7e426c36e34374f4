-- grants: none
-- The lowest event at or below a position that was recorded after a time; null where there is none. Walks down, and ends
-- once 1,000 events in a row are older: positions that were given out again stand close together.
create or replace function :schema.first_late(p_position bigint, p_after timestamptz) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  r record;
  v_late bigint;
  v_older integer := 0;
begin
  for r in select position, recorded_at from :schema.events where position <= p_position order by position desc loop
    if r.recorded_at > p_after then
      v_late := r.position;
      v_older := 0;
    else
      v_older := v_older + 1;
      exit when v_older = 1000;
    end if;
  end loop;
  return v_late;
end
$aftercommit$;
