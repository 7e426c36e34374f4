-- grants: read
-- Deliveries and events that ran out of attempts, with a copy of the event and the last error.
create or replace view :schema.dead_letters as
  select id, kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, status, who, reason
    from :schema.letters;
