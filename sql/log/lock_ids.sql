-- grants: run
-- Lets batches that append chosen ids take their turn, in one order, by groups of ids: two of them with the same ids in another
-- order would each hold what the other waits for. Rows of a table that roles have no rights on: advisory locks could be taken,
-- and kept, by any role that connects.
create or replace function :schema.lock_ids(p_ids text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  perform from :schema.id_turns
    where turn in (select get_byte(sha256(convert_to(id, 'UTF8')), 0) & 63 from unnest(p_ids) id)
    order by turn
      for update;
end
$aftercommit$;
