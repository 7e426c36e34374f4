-- grants: none
-- The doorbell: wakes sleeping readers after a commit. A statement of its own after the insert, so that it sees idle marks
-- written while the insert waited for its locks; above READ COMMITTED it cannot see fresh marks and always rings. The common
-- case under load, no idle reader, costs one look at a table of one page. A full notification queue would fail the commit:
-- above half of it the bell stays silent.
create or replace function :schema.ring() returns trigger
language plpgsql as $aftercommit$
begin
  if current_setting('transaction_isolation') = 'read committed'
     and not exists (select from :schema.idle_marks where idle_until > clock_timestamp()) then
    return null;
  end if;
  if coalesce(current_setting('aftercommit.bell', true), '') <> 'off'
     and (select wake = 'doorbell' from :schema.settings)
     and pg_notification_queue_usage() < 0.5 then
    perform pg_notify(:channel_literal, '');
  end if;
  return null;
end
$aftercommit$;
