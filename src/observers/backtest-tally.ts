/** One observer in a backtest: what it would have done, counted, with a few examples. Memory is bounded, however long. */
import { type Scope, scopeOf } from '../conditions/index.ts'
import { isUndecodable } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { idempotencyKeyOf, type Preview } from './action.ts'
import type { ActionConfig, ObserverConfig } from './config/index.ts'

export interface BacktestObserver {
  readonly observer: string
  /** Events that it is about, by type and entity. */
  readonly events: number
  readonly matched: number
  readonly conditionFalse: number
  /** The condition did not hold because a field was absent, and how often which; the field's name may be the mistake. */
  readonly fieldAbsent: number
  readonly absentFields: readonly { readonly field: string; readonly count: number }[]
  /** Events for which the condition, `order_by` or the event itself could not be read: failures. */
  readonly conditionErrors: number
  readonly actions: readonly BacktestAction[]
  /** The first events that matched, with what would have been sent; secrets are masked, the payload is not. */
  readonly samples: readonly BacktestSample[]
  /** The first failures. */
  readonly problems: readonly BacktestProblem[]
}

export interface BacktestAction {
  readonly name: string
  readonly type: string
  readonly wouldSend: number
  /** Templates that failed, addresses that are refused. */
  readonly errors: number
}

export interface BacktestSample {
  readonly eventId: string
  readonly position: bigint
  readonly previews: readonly (Preview & { readonly action: string })[]
}

export interface BacktestProblem {
  readonly eventId: string
  readonly position: bigint
  /** Null when it is not about one of the actions. */
  readonly action: string | null
  readonly code: string | null
  readonly message: string
}

export interface Tally {
  readonly config: ObserverConfig
  add(event: AnyEvent): void
  result(): BacktestObserver
}

const MOST_PROBLEMS = 10
const MOST_FIELDS = 20

export function createTally(
  config: ObserverConfig,
  { samples: most, env }: { samples: number; env: Readonly<Record<string, string>> },
): Tally {
  const actions = config.actions.map((action) => ({ action, wouldSend: 0, errors: 0 }))
  const counts = { events: 0, matched: 0, conditionFalse: 0, fieldAbsent: 0, conditionErrors: 0 }
  const absent = new Map<string, number>()
  const samples: BacktestSample[] = []
  const problems: BacktestProblem[] = []

  function note(event: AnyEvent, action: string | null, error: unknown): void {
    if (problems.length >= MOST_PROBLEMS) return
    const { message, code = null } = error instanceof Error ? (error as Error & { code?: string }) : failure(error)
    problems.push({ eventId: event.id, position: event.position, action, code, message })
  }

  function fail(event: AnyEvent, error: unknown): void {
    counts.conditionErrors++
    note(event, null, error)
  }

  function addAbsent(field: string): void {
    counts.fieldAbsent++
    if (absent.has(field) || absent.size < MOST_FIELDS) absent.set(field, (absent.get(field) ?? 0) + 1)
  }

  function act(event: AnyEvent, scope: Scope): void {
    counts.matched++
    const previews: (Preview & { action: string })[] = []
    for (const tally of actions) {
      try {
        const preview = previewOf(config, tally.action, event, scope)
        tally.wouldSend++
        if (preview !== undefined && samples.length < most) previews.push({ action: tally.action.name, ...preview })
      } catch (error) {
        tally.errors++
        note(event, tally.action.name, error)
      }
    }
    if (samples.length < most) samples.push({ eventId: event.id, position: event.position, previews })
  }

  return {
    config,
    add(event) {
      counts.events++
      if (isUndecodable(event)) return fail(event, UNREADABLE)
      const scope = scopeOf(event, env)
      const verdict = config.compiled.condition?.evaluate(scope) ?? HOLDS
      if (verdict.holds) {
        const problem = orderProblem(config, scope)
        if (problem !== undefined) fail(event, problem)
        else act(event, scope)
      } else if (verdict.error !== undefined) fail(event, verdict.error)
      else if (verdict.absent !== undefined) addAbsent(verdict.absent)
      else counts.conditionFalse++
    },
    result: () => ({
      observer: config.name,
      ...counts,
      absentFields: [...absent].map(([field, count]) => ({ field, count })).sort((a, b) => b.count - a.count),
      actions: actions.map(({ action: { name, type }, wouldSend, errors }) => ({ name, type, wouldSend, errors })),
      samples,
      problems,
    }),
  }
}

const HOLDS = { holds: true } as const
const UNREADABLE = Object.assign(new Error('What is stored of the event cannot be read.'), { code: 'OB001' })

function previewOf(config: ObserverConfig, action: ActionConfig, event: AnyEvent, scope: Scope): Preview | undefined {
  return action.prepared?.preview({
    event,
    scope,
    get idempotencyKey() {
      return idempotencyKeyOf(event.id, config.name, action.name)
    },
  })
}

function orderProblem({ compiled: { orderBy } }: ObserverConfig, scope: Scope): unknown {
  try {
    orderBy?.evaluate(scope)
    return undefined
  } catch (error) {
    return error
  }
}

function failure(error: unknown): { message: string; code?: string } {
  return { message: String(error) }
}
