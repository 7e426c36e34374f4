/**
 * `type = "cache"`: lets keys go, or loads them anew, in the Redis of `[redis]` and in the caches inside all processes.
 * Redis comes first: a process that hears of the invalidation may fill its own cache from there at once.
 */
import { z } from 'zod'
import { CACHE_EVENT, type KeyChoice, type Loader, meansEverything, toKeyChoice } from '../../cache/index.ts'
import { toMs } from '../../runtime/index.ts'
import { causedBy } from '../../subscriptions/index.ts'
import type { ActionContext, ActionRequest, ActionResult, ActionType, PreparedAction } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { toObserverError } from './custom.ts'
import { createMistakes } from './mistakes.ts'
import { constantText, rendering, unusable } from './rendering.ts'
import { durationText, templateText } from './schema-parts.ts'

const schema = z.strictObject({
  action: z.enum(['invalidate', 'refresh']).describe('refresh: loaded anew by a loader of ac.cache'),
  keys: z
    .union([templateText, z.array(templateText).min(1).max(100)])
    .describe('templates; *, ? and [ make a pattern, where a value never does'),
  target: z
    .enum(['both', 'redis', 'process'])
    .default('both')
    .describe('the Redis of [redis], the caches inside all processes, or both'),
  all: z.boolean().default(false).describe('allows a pattern that means every key there is'),
  ttl: durationText.optional().describe('refresh: how long Redis keeps it; until it is invalidated unless told'),
  timeout: durationText.default('30s').describe('refresh: for one load'),
})

type CacheConfig = z.infer<typeof schema>

export const cache: ActionType<CacheConfig> = { type: 'cache', schema, defaultRetry: 'service', prepare }

/** Longer ones are a mistake of a template rather than keys. */
const LONGEST_KEY = 4_096

function prepare(config: CacheConfig, context: ActionContext): PreparedAction {
  const { action, target, all } = config
  const { templates, clock, sharedCache } = context
  const mistakes = createMistakes()
  const texts = [config.keys].flat().map((key, at) =>
    mistakes.at(Array.isArray(config.keys) ? ['keys', at] : ['keys'], () => {
      const template = templates.text(key, 'glob', 'keys')
      const constant = constantText(template)
      const problem = constant === undefined ? undefined : problemOf(toKeyChoice(constant))
      if (problem !== undefined) throw new ObserverError('OB012', `${problem}.`)
      return template
    }),
  )
  if (target !== 'process' && sharedCache === null) mistakes.add(['target'], NO_REDIS)
  if (action === 'refresh' && context.cache?.hasLoaders === false) mistakes.add(['action'], NO_LOADER)
  if (action === 'invalidate' && config.ttl !== undefined) mistakes.add(['ttl'], 'is for action = "refresh" alone.')
  mistakes.throwIfAny()

  const store = target === 'process' ? undefined : sharedCache!.store
  const destination = store === undefined ? null : `cache ${sharedCache!.origin}`
  const what = `The cache action`
  const timeoutMs = toMs(config.timeout, 'timeout')
  const ttlMs = config.ttl === undefined ? undefined : toMs(config.ttl, 'ttl')

  function problemOf(choice: KeyChoice): string | undefined {
    const text = 'key' in choice ? choice.key : choice.pattern
    if (text === '') return 'is empty'
    if (text.length > LONGEST_KEY) return `is longer than ${LONGEST_KEY} characters`
    if ('key' in choice) return undefined
    if (action === 'refresh') return 'is a pattern, and only single keys can be loaded'
    return meansEverything(text) && !all ? 'means every key there is; say all = true if that is meant' : undefined
  }

  function choose({ scope }: Pick<ActionRequest, 'scope'>): KeyChoice[] {
    const choices = rendering(what, () => texts.map((text) => toKeyChoice(text.render(scope))))
    const problem = choices.map(problemOf).find((found) => found !== undefined)
    if (problem !== undefined) throw unusable(what, `a key ${problem}`)
    return choices
  }

  /** In order, one after the other: a key that fails is tried again with those after it. */
  async function refreshAll(choices: readonly KeyChoice[], { event, signal }: ActionRequest): Promise<string> {
    const found = choices.map((choice) => loaderFor((choice as { key: string }).key))
    let here = 0
    for (const { key, load } of found) {
      const refresh = { key, position: event.position, load, ttlMs, timeoutMs, signal }
      if ((await store!.refresh(refresh)) === 'here') here++
    }
    return `loaded ${here} of ${found.length} keys, the others elsewhere`
  }

  function loaderFor(key: string): Loader & { readonly key: string } {
    const loader = context.cache?.loaderOf(key)
    if (loader) return { ...loader, key }
    throw new ObserverError(
      'OB004',
      `${what} was not done: no loader of ac.cache fits a key. Register one with ac.cache.loader("<pattern>", …), then ` +
        'redrive the dead letter.',
    )
  }

  async function actOnStore(choices: readonly KeyChoice[], request: ActionRequest): Promise<string> {
    if (store === undefined) return 'told all processes'
    if (action === 'refresh') return refreshAll(choices, request)
    return `removed ${await store.invalidate(choices, request.event.position, request.signal)} keys`
  }

  async function announce(choices: readonly KeyChoice[], { event, idempotencyKey }: ActionRequest): Promise<void> {
    if (target === 'redis') return
    if (context.cache === null) throw new ObserverError('OB004', `${what} has no log to tell other processes through.`)
    const invalidation = {
      action,
      keys: choices.flatMap((choice) => ('key' in choice ? [choice.key] : [])),
      patterns: choices.flatMap((choice) => ('pattern' in choice ? [choice.pattern] : [])),
    }
    await causedBy(event, () => context.cache!.announce(`cache_${idempotencyKey}`, invalidation))
  }

  return {
    destination,
    singleAttempt: false,
    async run(request): Promise<ActionResult> {
      const began = clock.monotonic()
      const done = (message: string) => {
        return { actionType: 'cache', success: true, message, durationMs: clock.monotonic() - began }
      }
      // What a rule for every event would answer with another one, again and again.
      if (request.event.type === CACHE_EVENT) return done('is an invalidation itself')
      const choices = choose(request)
      try {
        const message = await actOnStore(choices, request)
        await announce(choices, request)
        return done(message)
      } catch (error) {
        throw request.signal.aborted ? error : toObserverError(what, error)
      }
    },
    preview: (request) => {
      const shown = choose(request).map((choice) => ('key' in choice ? choice.key : choice.pattern))
      return { actionType: 'cache', destination, content: { action, target, keys: shown } }
    },
  }
}

const NO_REDIS = 'needs Redis, and [redis] is not enabled. Enable it, or say target = "process".'
const NO_LOADER = 'needs a loader, and none is registered. Call ac.cache.loader("<pattern>", …) before this is loaded.'
