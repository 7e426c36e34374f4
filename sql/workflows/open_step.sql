-- grants: none
-- Prepares a step before it writes: deletes the delivery that brought its input, where the claim still stands, and takes its
-- unique key. Returns the instance that has the key already, and takes none then.
create or replace function :schema.open_step(p_type text, p_id text, p jsonb) returns text
language plpgsql as $aftercommit$
declare
  v_letter bigint;
  v_holder text;
begin
  if p ? 'done' then
    -- Under the lock of the instance: a transaction that cancelled this delivery has ended by now, and its outcome is seen.
    delete from :schema.deliveries
     where segment = (p -> 'done' ->> 'segment')::smallint and id = (p -> 'done' ->> 'id')::bigint
       and token = (p -> 'done' ->> 'token')::bigint
    returning letter into v_letter;
    if not found then
      raise exception 'The claim was lost.' using errcode = 'AC014';
    end if;
    if v_letter is not null then
      update :schema.letters set status = 'resolved', changed_at = clock_timestamp() where id = v_letter and status = 'redriving';
    end if;
  end if;
  if p ? 'key' then
    loop
      insert into :schema.workflow_keys (type, unique_key, id) values (p_type, p ->> 'key', p_id) on conflict do nothing;
      exit when found;
      select id into v_holder from :schema.workflow_keys where type = p_type and unique_key = p ->> 'key';
      -- Given back in between.
      continue when not found;
      exit when v_holder = p_id;
      return v_holder;
    end loop;
    delete from :schema.workflow_keys where type = p_type and unique_key = p ->> 'freed' and id = p_id;
  end if;
  return null;
end
$aftercommit$;
