-- grants: emit
-- The aggregate id of a row. Without settings of its own, so that Postgres writes it into the caller's statement: only
-- functions that pin search_path call it.
create or replace function :schema.capture_key(p_image jsonb, p_keys text[]) returns text
language sql stable as $aftercommit$
  select case when cardinality(p_keys) = 1 and length(p_image ->> p_keys[1]) between 1 and 255
    then p_image ->> p_keys[1] else :schema.capture_uncommon_key(p_image, p_keys) end
$aftercommit$;
