/** The hooks of an instance: added, removed, looked at, started and stopped together, and fed by one log. */
import { AftercommitError } from '../errors.ts'
import type { AftercommitEvent, EventDefinitions, EventOf } from '../events/index.ts'
import type { AnyEvent, EmitRequest, Emitted } from '../log/index.ts'
import type { CallerTransaction } from '../postgres/index.ts'
import type { Service, ServiceState } from '../runtime/index.ts'
import { type AuthInput, toAuthRequest } from './auth.ts'
import { createBroadcastFeed } from './broadcast-feed.ts'
import type { Broadcaster, OverflowPolicy } from './broadcaster.ts'
import { ClusterHook } from './cluster-hook.ts'
import { type HookOptions, type HookStatus, isEnabled, toHook } from './hook.ts'
import type { HookRelay } from './hook-relay.ts'
import { InstanceHook } from './instance-hook.ts'
import { createRelays, type RelaysParts } from './relays.ts'
import type { SystemEvent } from './system-event.ts'

export interface Hooks<D extends EventDefinitions = EventDefinitions> {
  /** False when the hook is disabled: then it is neither registered nor counted. */
  add<const P extends readonly string[] = readonly ['*']>(
    hook: HookOptions<HookEvent<D, P>> & { readonly types?: P | undefined },
  ): boolean
  /** Ends a hook in this process, `onStop` included. False when there is none of that name. */
  remove(name: string): Promise<boolean>
  list(): HookStatus[]
  status(name: string): HookStatus
  count(): number
  /** Carries word of events between processes, so that hooks hear at once where the database cannot ring them. */
  connect(relay: HookRelay): void
}

/** Types that a catalogue does not have, such as `auth.*`, are events all the same. */
export type HookEvent<D extends EventDefinitions, P extends readonly string[]> = [EventOf<D, P>] extends [never]
  ? AnyEvent
  : EventOf<D, P> extends AftercommitEvent
    ? EventOf<D, P>
    : AnyEvent

export interface HooksParts extends RelaysParts {
  /** Appends through a transaction, or by itself without one. Not checked against the catalogue. */
  readonly append: (request: EmitRequest, tx?: unknown) => Promise<Emitted>
  /** Events the broadcaster keeps for slow subscribers. */
  readonly ring?: number | undefined
  /** What becomes of a subscriber of the broadcaster that is too slow. */
  readonly overflow: () => OverflowPolicy
}

export interface HooksPart {
  readonly hooks: Hooks
  readonly broadcaster: Broadcaster<SystemEvent>
  emitAuth(auth: AuthInput, options?: { tx?: CallerTransaction | undefined }): Promise<Emitted>
  /** Starting it resolves when every hook is ready, or has failed once. */
  readonly service: Service
}

export function createHooks(parts: HooksParts): HooksPart {
  const { metrics, subscriptions, append, ring = 1024 } = parts
  const known = new Map<string, InstanceHook | ClusterHook>()
  const feed = createBroadcastFeed({ ...parts, ring })
  const relays = createRelays(parts)
  let state: ServiceState = 'idle'
  exposeGauges()

  const hooks: Hooks = {
    add(options) {
      const hook = toHook(options as HookOptions)
      if (!isEnabled(options as HookOptions)) return false
      if (known.has(hook.name)) {
        throw new AftercommitError('BAD_OPTION', `Hook "${hook.name}" is added twice; the second was refused.`)
      }
      const added =
        hook.scope === 'instance' ? new InstanceHook(hook, parts) : new ClusterHook(hook, parts, subscriptions)
      known.set(hook.name, added)
      if (state === 'running' || state === 'starting') void added.start()
      return true
    },
    async remove(name) {
      const hook = known.get(name)
      if (hook === undefined) return false
      known.delete(name)
      await (hook instanceof ClusterHook ? hook.remove() : hook.stop())
      return true
    },
    list: () => [...known.values()].map((hook) => hook.status()),
    status(name) {
      const hook = known.get(name)
      if (hook) return hook.status()
      throw new AftercommitError('BAD_OPTION', `There is no hook "${name}" in this process.`)
    },
    count: () => known.size,
    connect: relays.connect,
  }

  function exposeGauges(): void {
    metrics
      .gauge({ name: 'aftercommit_hook_lag', help: 'Positions between a hook and the frontier.', labels: ['hook'] })
      .collect(() =>
        hooks
          .list()
          .filter(({ lag }) => lag !== null)
          .map(({ name, lag }) => ({ labels: { hook: name }, value: Number(lag) })),
      )
    metrics
      .gauge({ name: 'aftercommit_hook_ready', help: '1 when a hook is ready, else 0.', labels: ['hook'] })
      .collect(() => hooks.list().map(({ name, ready }) => ({ labels: { hook: name }, value: Number(ready) })))
  }

  const service: Service = {
    name: 'hooks',
    get state() {
      return state
    },
    async start() {
      if (state === 'running') return
      state = 'starting'
      await feed.service.start()
      await Promise.all([relays.start(), ...[...known.values()].map((hook) => hook.start())])
      if (state === 'starting') state = 'running'
    },
    async stop() {
      if (state === 'idle' || state === 'stopped') return
      state = 'stopping'
      await Promise.all([relays.stop(), ...[...known.values()].map((hook) => hook.stop())])
      await feed.service.stop()
      state = 'stopped'
    },
  }

  return {
    hooks,
    broadcaster: feed.broadcaster,
    emitAuth: async (auth, { tx } = {}) => append(toAuthRequest(auth), tx),
    service,
  }
}
