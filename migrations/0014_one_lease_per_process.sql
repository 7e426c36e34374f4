-- why: one lease per process says that the process lives; terms of subscriptions and tokens of claims name it.
-- locks: ACCESS EXCLUSIVE on processes, subscription_partitions and delivery_workers, for milliseconds; no table is rewritten.
-- older: refuse

-- Leases of older processes end here: the new build takes subscriptions and claims up under leases of its own.
alter table :schema.processes drop column lease;
alter table :schema.processes add column lease text;
update :schema.processes set lease_until = null;
comment on column :schema.processes.locked is 'Whether the lock proves that the process lives; behind a pooler only the end of the lease does.';
comment on column :schema.processes.lease is
  'Name of the lease of the process, new after each loss: subscriptions and claims name it. Null while the process has none.';
comment on column :schema.processes.lease_until is 'End of that lease unless it is renewed.';

alter table :schema.subscription_partitions drop column lease_until;
update :schema.subscription_partitions set term = term + 1, owner = null where owner is not null;
comment on column :schema.subscription_partitions.owner is 'Lease of the process that runs the subscription; without that lease nobody does.';

alter table :schema.delivery_workers drop column lease_until;
alter table :schema.delivery_workers drop column locks;
comment on column :schema.delivery_workers.worker is 'Lease of the process; without that lease its claims are free.';
