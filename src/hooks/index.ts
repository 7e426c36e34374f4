/**
 * Code that reacts inside the process. The stage promises that a hook of scope `instance` hears in every process what the
 * log holds from the moment it stood at the head, that it loads before it counts as ready and loads again when its place
 * was lost; that a hook of scope `cluster` runs once in the whole cluster, with retries and dead letters; and that no hook
 * holds up another. It relies on the one tailer of the process and on subscriptions, so writes made by psql count too.
 *
 * Start with hook.ts (what users write), then instance-hook.ts (one hook at work), lanes.ts, which decides and touches
 * nothing, and hooks.ts (the registry). broadcaster.ts and evented-storage.ts stand for themselves; reload-hook.ts,
 * revocation-hook.ts and audit-hook.ts are hooks as anybody could write them.
 */
export { type AuditAction, type AuditHookOptions, type AuditStore, auditHook } from './audit-hook.ts'
export type { AuditRecord } from './audit-record.ts'
export { AUTH_TYPES, type AuthInput, type AuthType } from './auth.ts'
export {
  type Broadcaster,
  type BroadcasterOptions,
  type BroadcastReader,
  createBroadcaster,
  type Missed,
  type OverflowPolicy,
} from './broadcaster.ts'
export { type EventedStorageOptions, eventedStorage, type Repository } from './evented-storage.ts'
export type { HookContext, HookOptions, HookScope, HookStartContext, HookStatus, StartReason } from './hook.ts'
export type { HookRelay, RelayHost, RelayPublisher } from './hook-relay.ts'
export { createHooks, type Hooks, type HooksPart, type HooksParts } from './hooks.ts'
export { type ReloadHookOptions, reloadHook } from './reload-hook.ts'
export {
  type RevocationHook,
  type RevocationHookOptions,
  type RevocationStore,
  revocationHook,
} from './revocation-hook.ts'
export type { StorageEvent } from './storage-events.ts'
export { type AuthEvent, type ResourceEvent, type SystemEvent, toSystemEvent } from './system-event.ts'
