-- grants: none
-- Whether columns of an image may have to be left out: it is longer than the limit, or could nest too deep, which takes more than 500
-- bytes. Inlined by the planner, and therefore without settings of its own.
create or replace function :schema.capture_is_large(p_image jsonb, p_limit bigint) returns boolean
language sql stable as $aftercommit$
  select pg_catalog.octet_length(p_image::text) operator(pg_catalog.>) p_limit
    or pg_catalog.pg_column_size(p_image) operator(pg_catalog.>) 500
      and pg_catalog.jsonb_path_exists(p_image, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")')
$aftercommit$;
