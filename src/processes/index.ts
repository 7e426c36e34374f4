/**
 * Which processes live. Each has one row in `processes` with one lease, which says that it lives: until when, and by which
 * lock others can tell at once that it does not. The room promises that work of a process is free within 16 s of its end,
 * and within about 2 s where its lock can be seen. Subscriptions fence their writes with a term, deliveries with the
 * token of a claim; both name the lease, and ask nobody else who lives.
 *
 * Start with numbers.ts (how long everything lasts, and why) and lease-keeper.ts (the loop).
 */
export { LeaseKeeper, type LeaseKeeperOptions, type LeaseWatcher, type ProcessLease } from './lease-keeper.ts'
export { LEASE_MS } from './numbers.ts'
export { LEASES_CHANGED, type ProcessInfo, registerProcess, removeProcess } from './statements.ts'
