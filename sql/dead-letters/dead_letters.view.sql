-- grants: read
-- Deliveries and events that ran out of attempts, with a copy of the event and the last error.
create or replace view :schema.dead_letters as
  select id, kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, status, who, reason
    from :schema.letters;
comment on column :schema.dead_letters.id is 'Number of the dead letter, as the commands take it.';
comment on column :schema.dead_letters.kind is 'Kind of what gave up: a subscription or relay, or an action, effect or timer.';
comment on column :schema.dead_letters.owner is 'Name of what gave up: the subscription, the observer, or the workflow type.';
comment on column :schema.dead_letters.key is 'What comes in order: later work of the same key may wait behind the letter.';
comment on column :schema.dead_letters.event_id is 'The event that could not be handled, or the id of the work where it has none.';
comment on column :schema.dead_letters.position is 'Position of that event in the log.';
comment on column :schema.dead_letters.event is 'Copy of the event.';
comment on column :schema.dead_letters.error is 'The last error.';
comment on column :schema.dead_letters.attempts is 'Attempts made before it was given up.';
comment on column :schema.dead_letters.status is 'dead, redriving, resolved or discarded.';
comment on column :schema.dead_letters.who is 'Who changed the status by hand.';
comment on column :schema.dead_letters.reason is 'Why it was changed, as that person said.';
comment on column :schema.dead_letters.first_attempt_at is 'When it was tried first.';
comment on column :schema.dead_letters.last_attempt_at is 'When it was tried last.';
