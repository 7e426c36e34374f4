-- grants: run
-- The processes that live, by their leases. `lockless`: the lock that proves the process alive is not held, so the process
-- is gone unless it reconnects within a second. The lock is looked up only by queries that read this column. The time is
-- that of the statement: its snapshot may be older than the last renewal, and a process must not look dead for that.
create or replace view :schema.live_leases as
  select p.lease, p.process, p.lease_until,
         p.locked and not exists (
           select from pg_catalog.pg_locks l
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1
              and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
              and (l.classid::bigint << 32 | l.objid::bigint) = pg_catalog.hashtextextended(p.lock_key, 0)) as lockless
    from :schema.processes p
   where p.lease_until > statement_timestamp();
comment on column :schema.live_leases.lease is 'Name of the lease: owner of subscriptions, worker of claims.';
comment on column :schema.live_leases.process is 'The process that has it.';
comment on column :schema.live_leases.lease_until is 'When it ends unless it is renewed.';
comment on column :schema.live_leases.lockless is 'The lock that proves the process alive is not held.';
