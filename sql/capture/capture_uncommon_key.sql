-- grants: emit
-- The aggregate id of a key that is not one short text: the parts of a composite key are joined by commas, with \ before a
-- comma or \ of a part; an empty key is written as ""; a key of more than 255 characters is its first 200 and a hash.
create or replace function :schema.capture_uncommon_key(p_image jsonb, p_keys text[]) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $aftercommit$
declare
  v_key text;
begin
  if cardinality(p_keys) = 1 then
    v_key := p_image ->> p_keys[1];
  else
    select string_agg(replace(replace(p_image ->> k.name, '\', '\\'), ',', '\,'), ',' order by k.place)
      into v_key
      from unnest(p_keys) with ordinality k (name, place);
  end if;
  return :schema.capture_short(case when v_key = '' then '""' else v_key end);
end
$aftercommit$;
