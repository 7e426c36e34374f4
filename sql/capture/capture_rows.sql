-- grants: emit
-- Trigger of a captured table: writes the events of one statement, inside its transaction. One changed row takes a path
-- without a join. More rows are one EXECUTE: its plan knows how many rows there are, while a cached plan, made for few
-- rows, would compare each old row with each new one. The settings pinned here keep what is written independent of the
-- session. Arguments: aggregate type, key columns, left out columns, number of columns of the table, the numbers of those
-- columns, whether an UPDATE that changes nothing is an event, the table.
create or replace function :schema.capture_rows() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1
set lc_monetary = 'C' set jit = off as $aftercommit$
declare
  v_olds jsonb[] := '{}';
  v_news jsonb[] := '{}';
  v_keys text[] := tg_argv[1];
  v_omit text[] := tg_argv[2];
  v_columns smallint;
  v_max_payload bigint;
  v_max_depth integer;
  v_metadata jsonb;
  v_tenant text;
  v_surplus bigint;
  v_image text;
  -- As new_id(), which would be called for every row. $8 is the time.
  v_id constant text := 'encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing $8 from 1 for 6), 52, 1), 53, 1), ''hex'')::uuid::text';
  v_time bytea := substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3);
  r record;
begin
  if current_setting('aftercommit.capture', true) = 'off' then return null; end if;
  begin
    if tg_op <> 'INSERT' then v_olds := array(select to_jsonb(o.*) from old_rows o limit 2); end if;
    if tg_op <> 'DELETE' then v_news := array(select to_jsonb(n.*) from new_rows n limit 2); end if;
  exception when data_exception or program_limit_exceeded then
    v_olds := null;
  end;
  if v_olds = '{}' and v_news = '{}' then return null; end if;
  if cardinality(v_olds) < 2 and cardinality(v_news) < 2 then
    perform :schema.capture_one(tg_relid, tg_argv, v_olds[1], v_news[1]);
    return null;
  end if;

  -- A BEFORE trigger of a partition can refuse a row that moves there, so that its old row has no new one.
  if tg_op = 'UPDATE' then
    select count(*) - (select count(*) from new_rows) into v_surplus from old_rows;
  end if;
  if v_olds is not null then
    select least(s.max_payload, 3000000), s.max_depth, c.relnatts into v_max_payload, v_max_depth, v_columns
      from :schema.settings s, pg_class c where c.oid = tg_relid;
    if v_columns <> tg_argv[3]::smallint or not coalesce(v_news[1], v_olds[1]) ?& (v_keys || v_omit) then
      select * into v_keys, v_omit from :schema.capture_names(tg_relid, tg_argv[4]::jsonb);
    end if;
    select * into v_metadata, v_tenant from :schema.capture_context(tg_argv[0], tg_argv[6], v_max_depth);
    begin
      if tg_op = 'UPDATE' then
        execute replace(replace($update$
          insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata, occurred_at)
          select {id}, $1 || e.kind, $1, e.key, $6, e.payload, e.changes, e.previous,
                 case when e.link is null and p.lost is null then $5
                   else $5 || coalesce(e.link, '{}') || case when p.lost is null then '{}' else jsonb_build_object('omitted', to_jsonb(p.lost)) end end,
                 clock_timestamp()
            from (select place, lost, case when lost is null then old else old - lost end as old,
                         case when lost is null then new else new - lost end as new,
                         :schema.capture_key(old, $2) as old_key, :schema.capture_key(new, $2) as new_key
                    from (select o.place, o.old, n.new,
                                 case when :schema.capture_is_large(o.old, $4) or :schema.capture_is_large(n.new, $4)
                                   then :schema.capture_oversized(o.old, n.new, $2, $4) end as lost
                            from (select row_number() over () as place, to_jsonb(r.*) - $3 as old from old_rows r) o
                            full join (select row_number() over () as place, to_jsonb(r.*) - $3 as new from new_rows r) n on {join}
                          offset 0) i
                  offset 0) p
           cross join lateral (
             select '.updated' as kind, p.new_key as key, p.new as payload, p.old as previous, null::jsonb as link, 1 as turn,
                    (select jsonb_object_agg(c.key, jsonb_build_object('old', p.old -> c.key, 'new', c.value))
                       from jsonb_each(p.new) c
                      where c.value is distinct from p.old -> c.key) as changes
              where p.old_key = p.new_key
              union all
             select '.deleted', p.old_key, p.old, null, jsonb_strip_nulls(jsonb_build_object('key_changed_to', p.new_key)), 0, null
              where p.old_key is distinct from p.new_key and p.old_key is not null
              union all
             select '.created', p.new_key, p.new, null, jsonb_strip_nulls(jsonb_build_object('key_changed_from', p.old_key)), 1, null
              where p.old_key is distinct from p.new_key and p.new_key is not null) e
           where e.kind <> '.updated' or e.changes is not null or $7 or p.lost is not null
           order by e.turn, p.place$update$, '{id}', v_id), '{join}',
          case when v_surplus = 0 then 'n.place = o.place'
            else $join$:schema.capture_key(n.new, $2) = :schema.capture_key(o.old, $2)$join$ end)
          using tg_argv[0], v_keys, v_omit, v_max_payload, v_metadata, v_tenant, tg_argv[5]::boolean, v_time;
      else
        execute replace(replace(replace($rows$
          insert into :schema.events (id, type, aggregate_type, aggregate_id, tenant, payload, metadata, occurred_at)
          select {id}, $1 || {kind}, $1, :schema.capture_key(p.image, $2), $6, case when p.lost is null then p.image else p.image - p.lost end,
                 case when p.lost is null then $5 else $5 || jsonb_build_object('omitted', to_jsonb(p.lost)) end, clock_timestamp()
            from (select i.image, case when :schema.capture_is_large(i.image, $4)
                            then :schema.capture_oversized(null, i.image, $2, $4) end as lost
                    from (select to_jsonb(r.*) - $3 as image from {table} r offset 0) i
                  offset 0) p$rows$, '{id}', v_id),
            '{kind}', case tg_op when 'INSERT' then '''.created''' else '''.deleted''' end),
            '{table}', case tg_op when 'INSERT' then 'new_rows' else 'old_rows' end)
          using tg_argv[0], v_keys, v_omit, v_max_payload, v_metadata, v_tenant, null::boolean, v_time;
      end if;
      return null;
    exception when data_exception or program_limit_exceeded then
      null;
    end;
  end if;

  -- A value that jsonb cannot hold: row by row, and each row column by column.
  v_image := :schema.capture_image(tg_relid);
  for r in execute case tg_op
    when 'INSERT' then format('select null::jsonb as old, %s as new from new_rows r', v_image)
    when 'DELETE' then format('select %s as old, null::jsonb as new from old_rows r', v_image)
    else format('select o.image as old, n.image as new
                   from (select row_number() over () as place, %1$s as image from old_rows r) o
                   full join (select row_number() over () as place, %1$s as image from new_rows r) n using (place)
                  order by place', v_image) end
  loop
    perform :schema.capture_one(tg_relid, tg_argv, r.old, r.new);
  end loop;
  return null;
end
$aftercommit$;
