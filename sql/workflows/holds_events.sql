-- grants: none
-- Whether events of the log wait that came while this instance was paused, be it behind a dead letter of one of them.
create or replace function :schema.holds_events(p_type text, p_id text) returns boolean
language plpgsql stable as $aftercommit$
begin
  return exists (
    select from :schema.delivery_lanes l
      join :schema.deliveries_0 d on d.lane = l.lane
     where l.kind = 'timer' and l.name = p_type and d.key = p_id and d.unique_key is not null and d.ordered)
  or exists (
    select from :schema.letters x
     where x.kind = 'timer' and x.owner = p_type and x.key = p_id and x.parks and x.status in ('dead', 'redriving'));
end
$aftercommit$;
