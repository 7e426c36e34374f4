-- grants: emit
-- Trigger of a table captured with each => 'row': writes the event of one row as soon as the row is written, so that it comes
-- before events of rows that the table's own row triggers write. Arguments as in capture_rows; a partition has those of its
-- root.
create or replace function :schema.capture_row() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' as $aftercommit$
declare
  v_old jsonb;
  v_new jsonb;
  v_image text;
begin
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  begin
    if tg_op <> 'INSERT' then v_old := to_jsonb(old); end if;
    if tg_op <> 'DELETE' then v_new := to_jsonb(new); end if;
  exception when data_exception or program_limit_exceeded then
    v_image := format('select %s from (select ($1).*) r', :schema.capture_image(tg_relid));
    if tg_op <> 'INSERT' then execute v_image into v_old using old; end if;
    if tg_op <> 'DELETE' then execute v_image into v_new using new; end if;
  end;
  perform :schema.capture_one(coalesce(pg_partition_root(tg_relid), tg_relid), tg_argv, v_old, v_new);
  return null;
end
$aftercommit$;
