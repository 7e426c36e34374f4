/**
 * What happens for one event: find the observers it concerns, ask their conditions, do what they say. Nothing is written
 * for an event that matches nothing, nor for an action that succeeds, unless every run is recorded.
 */
import { type Scope, scopeOf } from '../conditions/index.ts'
import type { Reactions } from '../delivery/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type ActingParts, createRunningAction, type RunningAction } from './acting.ts'
import type { ObserverConfig } from './config/index.ts'
import { createMatching } from './matching.ts'
import { ObserverRun, type ObserverRunParts } from './observer-run.ts'

export interface RunningObserver {
  readonly on: readonly string[]
  readonly entity: string | null
  readonly config: ObserverConfig
  readonly actions: readonly RunningAction[]
}

/** `startOf` says where an action begins, by its owner: `observer/action`. */
export function createRunningObserver(
  config: ObserverConfig,
  startOf: (owner: string) => bigint,
  parts: ActingParts,
): RunningObserver {
  const actions: RunningAction[] = config.actions.map((action) =>
    createRunningAction(config, action, startOf(`${config.name}/${action.name}`), parts, (name) =>
      actions.find((one) => one.config.name === name),
    ),
  )
  return { on: config.on, entity: config.entity, config, actions }
}

export type EventOutcome = 'matched' | 'unmatched' | 'condition_false' | 'condition_error'

export interface ExecutorParts extends ObserverRunParts {
  readonly env: Readonly<Record<string, string>>
  readonly reactions: Reactions
  readonly count: (type: string, outcome: EventOutcome) => void
}

export interface Executor {
  /** Undefined when nothing has to be waited for. `isSuspect`: the event may be what ended the process before. */
  handle(event: AnyEvent, signal: () => AbortSignal, isSuspect?: boolean): Promise<unknown> | undefined
}

export function createExecutor(observers: readonly RunningObserver[], parts: ExecutorParts): Executor {
  const matching = createMatching(observers)
  const { logger, reactions, tellsDetails } = parts

  function observe(
    observer: RunningObserver,
    event: AnyEvent,
    scope: Scope,
    signal: () => AbortSignal,
    isSuspect: boolean,
  ) {
    const { config } = observer
    const actions = observer.actions.filter(({ start }) => event.position > start)
    if (actions.length === 0) return undefined
    const fields = { event_id: event.id, event_type: event.type, observer: config.name }
    const verdict = config.compiled.condition?.evaluate(scope) ?? HOLDS
    const error = 'error' in verdict ? verdict.error : undefined
    if (error !== undefined) {
      parts.count(event.type, 'condition_error')
      logger.warn({ ...fields, err: error }, 'condition failed')
    } else if (!verdict.holds) {
      parts.count(event.type, 'condition_false')
      if (tellsDetails) logger.debug(fields, 'condition not met')
      return undefined
    } else {
      parts.count(event.type, 'matched')
    }
    const run = new ObserverRun(parts, config, event, scope, error, isSuspect)
    return config.sequential && actions.length > 1 ? runInTurn(run, actions, signal) : runAll(run, actions, signal)
  }

  /** What one throws must not keep others from acting, nor leave a promise of theirs that nobody waits for. */
  function observeSafely(...asked: Parameters<typeof observe>): Promise<unknown> | undefined {
    try {
      return observe(...asked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** In declared order, without waiting for one another. */
  function runAll(run: ObserverRun, actions: readonly RunningAction[], signal: () => AbortSignal) {
    const asked = actions.map((action) => run.reactionOf(action))
    const ended = reactions.react(asked, signal)
    return ended === undefined ? run.finish() : ended.then(() => run.finish())
  }

  /** The next one starts when the one before is done; what becomes a row takes the rest with it. */
  async function runInTurn(run: ObserverRun, actions: readonly RunningAction[], signal: () => AbortSignal) {
    for (const [index, action] of actions.entries()) {
      await reactions.react([run.reactionOf(action, actions.slice(index + 1))], signal)
      if (run.lastOutcome !== 'success') break
    }
    await run.finish()
  }

  return {
    handle(event, signal, isSuspect = false) {
      const found = matching.find(event)
      const fields = tellsDetails ? { event_id: event.id, event_type: event.type, observers: found.length } : undefined
      if (fields) logger.debug(fields, 'processing event')
      if (found.length === 0) {
        parts.count(event.type, 'unmatched')
        if (fields) logger.debug(fields, 'no observer matched')
        return undefined
      }
      const scope = scopeOf(event, parts.env)
      let pending: Promise<unknown>[] | undefined
      for (const observer of found) {
        const end = observeSafely(observer, event, scope, signal, isSuspect)
        if (end === undefined) continue
        pending ??= []
        pending.push(end)
      }
      return pending && (pending.length === 1 ? pending[0] : Promise.all(pending))
    },
  }
}

const HOLDS = { holds: true } as const
