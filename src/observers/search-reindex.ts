/**
 * Search indexes made anew from history, by the rules of this process. In Postgres each index is built beside the one in
 * use and takes its place at the end; other engines have no such thing here, so documents are written in place, where a
 * newer position wins as ever and what no rule writes any more stays.
 */
import { scopeOf } from '../conditions/index.ts'
import { AftercommitError } from '../errors.ts'
import { isUndecodable } from '../events/index.ts'
import { type AnyEvent, findPosition, type Log, settledPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Duration } from '../runtime/index.ts'
import type { DocumentWriter } from '../search/index.ts'
import { isSearch, type PreparedSearch } from './actions/index.ts'
import type { ObserverConfig } from './config/index.ts'
import { patternsOf, toTime } from './history.ts'
import { createMatching } from './matching.ts'
import { createReindexTally, type ReindexReport, type ReindexTally } from './search-reindex-tally.ts'
import { type ComposedWrite, openTarget, type Target } from './search-reindex-target.ts'

export interface ReindexOptions {
  /** Names; all that the rules write to unless told. */
  readonly indexes?: readonly string[] | undefined
  /** Only events recorded since this time, or for so long; documents that were written before stay as they are. */
  readonly since?: Date | Duration | undefined
  readonly onProgress?: ((done: bigint, of: bigint) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ReindexParts {
  readonly database: Database
  readonly documents: DocumentWriter
  readonly log: Pick<Log, 'read'>
  readonly configs: readonly ObserverConfig[]
  readonly env: Readonly<Record<string, string>>
}

const PAGE = 500

export async function runReindex(options: ReindexOptions, parts: ReindexParts): Promise<ReindexReport> {
  const { database } = parts
  const { signal = new AbortController().signal } = options
  const now = database.clock.now()
  const since = options.since === undefined ? undefined : toTime(options.since, now, 'nothing was made anew')
  const rules = rulesOf(parts.configs)
  const actions = rules.flatMap((rule) => rule.actions)
  const target = await openTarget(actions, options.indexes, { ...parts, signal })
  try {
    // Only now: what is emitted from here on is written by whoever runs the rules, into the new generation too.
    const head = await settledPosition(database)
    const after = await findPosition(database, since ?? 'start', head)
    const tally = createReindexTally(since)
    await walk(rules, { ...options, after, head, signal }, parts, target, tally)
    signal.throwIfAborted()
    return tally.result(await target.finish({ after, head }, tally.written))
  } finally {
    await target.close()
  }
}

interface Rule {
  readonly on: readonly string[]
  readonly entity: string | null
  readonly config: ObserverConfig
  readonly actions: readonly PreparedSearch[]
}

/** Observers that are enabled and search. */
function rulesOf(configs: readonly ObserverConfig[]): readonly Rule[] {
  const rules = configs
    .filter(({ enabled }) => enabled)
    .map((config) => {
      const actions = config.actions.flatMap(({ prepared }) => (prepared && isSearch(prepared) ? [prepared] : []))
      return { on: config.on, entity: config.entity, config, actions }
    })
    .filter(({ actions }) => actions.length > 0)
  if (rules.length > 0) return rules
  throw new AftercommitError(
    'BAD_OPTION',
    'No rule has a search action, so there is no index to make anew. Load the file that has them.',
  )
}

interface Walk extends Pick<ReindexOptions, 'onProgress'> {
  readonly after: bigint
  readonly head: bigint
  readonly signal: AbortSignal
}

async function walk(
  rules: readonly Rule[],
  { after, head, onProgress, signal }: Walk,
  { log, env }: ReindexParts,
  target: Target,
  tally: ReindexTally,
): Promise<void> {
  const matching = createMatching(rules)
  const on = patternsOf(rules)
  for (let from = after; from < head; ) {
    signal.throwIfAborted()
    const page = (await log.read({ from, on, limit: PAGE })) as AnyEvent[]
    const writes: ComposedWrite[] = []
    for (const event of page.filter(({ position }) => position <= head)) {
      const concerned = matching.find(event)
      if (concerned.length > 0) tally.event()
      for (const rule of concerned) collect(rule, event, env, target, tally, writes)
    }
    await target.write(writes, tally)
    // What was final at the beginning is final in every read after it, so a page that is not full ends at the head.
    from = page.length < PAGE ? head : page.at(-1)!.position
    onProgress?.((from < head ? from : head) - after, head - after)
  }
}

/** What one rule makes of an event. What cannot be read or rendered is a dead letter when it happens, and is told here. */
function collect(
  { config, actions }: Rule,
  event: AnyEvent,
  env: Readonly<Record<string, string>>,
  target: Target,
  tally: ReindexTally,
  writes: ComposedWrite[],
): void {
  if (isUndecodable(event)) {
    tally.problem(event, config.name, UNREADABLE)
    return
  }
  const scope = scopeOf(event, env)
  const verdict = config.compiled.condition?.evaluate(scope) ?? HOLDS
  if (!verdict.holds) {
    if (verdict.error !== undefined) tally.problem(event, config.name, verdict.error)
    return
  }
  for (const action of actions) {
    try {
      const write = action.compose(event, scope)
      if (target.wants(write.index)) writes.push({ write, eventId: event.id, observer: config.name })
    } catch (error) {
      tally.problem(event, config.name, error)
    }
  }
}

const HOLDS = { holds: true } as const
const UNREADABLE = Object.assign(new Error('What is stored of the event cannot be read.'), { code: 'OB001' })
