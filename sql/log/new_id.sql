-- grants: emit
-- A UUIDv7 also on servers that have no uuidv7(): 48 bits of milliseconds laid over a random UUID, version bits set.
-- In PL/pgSQL: a function in SQL that sets its search_path is parsed and planned again in each transaction.
create or replace function :schema.new_id() returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  return encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid::text;
end
$aftercommit$;
