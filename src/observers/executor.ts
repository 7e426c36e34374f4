/**
 * One event: find its observers, evaluate their conditions, attempt their actions. Nothing is written here. What an event
 * leaves behind goes with the checkpoint: nothing for an event without a match, nor for an action that succeeds unless every
 * run is recorded.
 */
import { type Scope, scopeOf } from '../conditions/index.ts'
import type { Reactions } from '../delivery/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Abortable, createThrottledLog } from '../runtime/index.ts'
import { type Leaving, Leftovers } from '../subscriptions/index.ts'
import type { ObserverConfig } from './config/index.ts'
import { createMatching } from './matching.ts'
import { fieldsOf, ObserverRun, type ObserverRunParts } from './observer-run.ts'
import { type ActingParts, createRunningAction, type RunningAction } from './running-action.ts'

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

export interface ExecutorParts extends Omit<ObserverRunParts, 'logRepeatedly'> {
  readonly env: Readonly<Record<string, string>>
  readonly reactions: Reactions
  readonly count: (type: string, outcome: EventOutcome) => void
}

/** How an event is run. */
export interface EventCall {
  /** The call of the handler; the attempts of the event end with it. */
  readonly owner: Abortable
  /** The event may have ended the process before. */
  readonly isSuspect?: boolean
  readonly leaving?: Leaving | undefined
}

export interface Executor {
  /** What the event leaves behind; without a promise when all ended at once. */
  handle(event: AnyEvent, call: EventCall): Promise<Leftovers> | Leftovers | undefined
}

export function createExecutor(observers: readonly RunningObserver[], parts: ExecutorParts): Executor {
  const matching = createMatching(observers)
  const { logger, reactions, tellsDetails } = parts
  const logRepeatedly = createThrottledLog(parts)
  const runParts = { ...parts, logRepeatedly }

  function observe(
    observer: RunningObserver,
    event: AnyEvent,
    scope: Scope,
    left: Leftovers,
    { owner, isSuspect = false, leaving }: EventCall,
  ): Promise<void> | undefined {
    const { config } = observer
    const actions = unsettled(observer, leaving).filter(({ start }) => event.position > start)
    if (actions.length === 0) return undefined
    // Asked for where a line is written: it reads the metadata.
    const fields = () => ({ ...fieldsOf(event), observer: config.name })
    const verdict = config.compiled.condition?.evaluate(scope) ?? HOLDS
    const error = 'error' in verdict ? verdict.error : undefined
    if (error !== undefined) {
      parts.count(event.type, 'condition_error')
      logRepeatedly('warn', `${config.name} condition`, { ...fields(), err: error }, 'condition failed')
    } else if (!verdict.holds) {
      parts.count(event.type, 'condition_false')
      if (tellsDetails) logger.debug(fields(), 'condition not met')
      return undefined
    } else {
      parts.count(event.type, 'matched')
    }
    const run = new ObserverRun(runParts, config, event, scope, error, isSuspect)
    const runActions = config.sequential && actions.length > 1 ? runInTurn : runAll
    return runActions(run, actions, left, owner)
  }

  /** What one throws must not keep others from acting, nor leave a promise of theirs that nobody waits for. */
  function observeSafely(...asked: Parameters<typeof observe>): Promise<void> | undefined {
    try {
      return observe(...asked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** In declared order, without waiting for one another. */
  function runAll(run: ObserverRun, actions: readonly RunningAction[], left: Leftovers, owner: Abortable) {
    const asked = actions.map((action) => run.reactionOf(action))
    const ended = reactions.react(asked, left, owner)
    if (ended) return ended.then(() => run.finish(left))
    run.finish(left)
    return undefined
  }

  /** The next one starts when the one before is done; an action that becomes a row takes the rest with it. */
  async function runInTurn(run: ObserverRun, actions: readonly RunningAction[], left: Leftovers, owner: Abortable) {
    for (const [index, action] of actions.entries()) {
      await reactions.react([run.reactionOf(action, actions.slice(index + 1))], left, owner)
      if (run.lastOutcome !== 'success') break
    }
    run.finish(left)
  }

  return {
    handle(event, call) {
      const found = matching.find(event)
      const fields = tellsDetails ? { event_id: event.id, event_type: event.type, observers: found.length } : undefined
      if (fields) logger.debug(fields, 'processing event')
      if (found.length === 0) {
        parts.count(event.type, 'unmatched')
        if (fields) logger.debug(fields, 'no observer matched')
        return undefined
      }
      const scope = scopeOf(event, parts.env)
      const left = new Leftovers(call.leaving?.writeEarly)
      let pending: Promise<void>[] | undefined
      for (const observer of found) {
        const end = observeSafely(observer, event, scope, left, call)
        if (end === undefined) continue
        pending ??= []
        pending.push(end)
      }
      if (pending) return whenAllEnded(pending, left)
      return left.isEmpty ? undefined : left
    },
  }
}

/** Rejects with the first failure, once nothing more is added. */
async function whenAllEnded(pending: readonly Promise<void>[], left: Leftovers): Promise<Leftovers> {
  const ends = await Promise.allSettled(pending)
  const failed = ends.find((end) => end.status === 'rejected')
  if (!failed) return left
  left.drop()
  throw failed.reason
}

/** Actions whose row or letter is written are not attempted again; a row of a sequence has the rest of it. */
function unsettled({ actions, config }: RunningObserver, leaving: Leaving | undefined): readonly RunningAction[] {
  if (!leaving || leaving.settled.length === 0) return actions
  const left = actions.filter(({ owner }) => !leaving.settled.includes(owner))
  return config.sequential && left.length < actions.length ? [] : left
}

const HOLDS = { holds: true } as const
