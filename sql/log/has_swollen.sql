-- grants: none
-- Whether a payload that was taken for small is large as text: numbers with an exponent are stored in a few bytes. Other
-- content of 16,000 bytes has no more than 100,000 characters. Inlined by the planner, like may_break_limits.
create or replace function :schema.has_swollen(p_bytes integer, p_payload jsonb) returns boolean
language sql stable as $aftercommit$
  select p_bytes operator(pg_catalog.>) 100000 and pg_catalog.pg_column_size(p_payload) operator(pg_catalog.<=) 16000
$aftercommit$;
