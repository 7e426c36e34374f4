-- why: the browsers that users let us push to, and which of them have a message while others are tried again.
-- locks: none; every object here is new.
-- older: keep

-- One row per browser. Its address is a capability: with the keys it reaches the person behind it.
create table :schema.push_subscriptions (
  -- Addresses are longer than an index can hold.
  endpoint_hash text primary key,
  user_id text not null,
  endpoint text not null,
  p256dh text not null,
  auth text not null,
  created_at timestamptz not null default clock_timestamp(),
  -- When the browser last registered: the oldest go when a user has too many.
  seen_at timestamptz not null default clock_timestamp()
);
comment on table :schema.push_subscriptions is 'Browsers that receive push messages, by user.';
create index push_subscriptions_user on :schema.push_subscriptions (user_id, seen_at);

create table :schema.push_progress (
  -- The idempotency key of the action at the event.
  message text not null,
  endpoint_hash text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (message, endpoint_hash)
);
comment on table :schema.push_progress is 'Browsers that have a message which is tried again for others.';
create index push_progress_age on :schema.push_progress (at);
