-- grants: none
-- Whether the event that proves the history is missing, or another event has its position. Retention may remove it.
create or replace function :schema.witness_is_gone(p_witness bigint, p_witness_id text, p_kept_from bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return p_witness > 0 and p_witness >= p_kept_from and not exists (
    select from :schema.events where position = p_witness and (p_witness_id = '' or id = p_witness_id));
end
$aftercommit$;
