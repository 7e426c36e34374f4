-- grants: run
-- Makes the days to come and drops those whose time is over. Returns what was done.
create or replace function :schema.keep_run_days(p_keep interval) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $aftercommit$
declare
  v_day date;
  v_name text;
  v_done text[] := '{}';
begin
  if p_keep is null or p_keep < interval '1 day' then
    raise exception 'Run records are kept for at least a day, not %; nothing was dropped.', coalesce(p_keep::text, 'null')
      using errcode = 'AC004';
  end if;
  for v_day in select generate_series((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3, interval '1 day')::date loop
    v_name := 'runs_' || to_char(v_day, 'YYYYMMDD');
    continue when to_regclass(format('%I.%I', :schema_literal, v_name)) is not null;
    begin
      execute format('create table %1$I.%2$I partition of %1$I.runs for values from (%3$L) to (%4$L)', :schema_literal, v_name,
        v_day::text || ' 00:00:00+00', (v_day + 1)::text || ' 00:00:00+00');
      v_done := v_done || format('made %s', v_name);
    exception
      -- Somebody else made it, or records of that day went elsewhere already: they are fine there.
      when duplicate_table or check_violation or lock_not_available then null;
    end;
  end loop;
  for v_name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = format('%I.runs', :schema_literal)::regclass
       and c.relname ~ '^runs_\d{8}$'
       and to_date(substr(c.relname, 6), 'YYYYMMDD') < (now() at time zone 'UTC' - p_keep)::date
  loop
    begin
      execute format('drop table %I.%I', :schema_literal, v_name);
      v_done := v_done || format('dropped %s', v_name);
    exception when lock_not_available then null;
    end;
  end loop;
  delete from :schema.runs_other where at < now() - p_keep;
  return v_done;
end
$aftercommit$;
