-- grants: emit
-- A text of more than 255 characters becomes its first 200 and a hash of the whole, so that different texts stay different.
create or replace function :schema.capture_short(p_text text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  if length(p_text) <= 255 then return p_text; end if;
  return left(p_text, 200) || '~' || left(encode(sha256(convert_to(p_text, 'UTF8')), 'hex'), 32);
end
$aftercommit$;
