/**
 * Keeps something loaded from the database in step with it, in every process: policies, routes, feature flags. The
 * instance is ready once it has loaded, and is not while a reload that failed is tried again: rights that were taken away
 * must not live on in a cache.
 */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Duration } from '../runtime/index.ts'
import type { HookOptions } from './hook.ts'

export interface ReloadHookOptions
  extends Pick<HookOptions, 'name' | 'types' | 'kinds' | 'entities' | 'debounce' | 'enabled'> {
  /** Loads everything anew: at the start, when the place in the log was lost and, without `apply`, after changes. */
  readonly reload?: ((context: { signal: AbortSignal }) => unknown) | undefined
  /** Takes one change in instead of loading everything: an upsert, or a removal with the image before in `previous`. */
  readonly apply?: ((event: AnyEvent, context: { signal: AbortSignal }) => unknown) | undefined
  /** Empties what was derived from it, such as a cache of answers: after every reload and every change. */
  readonly clear?: (() => unknown) | undefined
  /** For one call of `reload` or `apply`; 30 s unless told. */
  readonly timeout?: Duration | undefined
}

/** Changes of one import come as one reload; the wait is at most ten times this. */
const DEBOUNCE = '200ms'

export function reloadHook({ reload, apply, clear, ...options }: ReloadHookOptions): HookOptions {
  const { debounce = DEBOUNCE, timeout = '30s', ...filter } = options
  if (reload === undefined && apply === undefined) {
    throw new AftercommitError(
      'BAD_OPTION',
      `Reload hook "${options.name}" needs \`reload\` or \`apply\`, so it was not made.`,
    )
  }
  const load = async (context: { signal: AbortSignal }) => {
    await reload?.(context)
    await clear?.()
  }
  const common = { ...filter, scope: 'instance', timeout, loadTimeout: timeout, onStart: load } as const
  if (apply === undefined) {
    // One reload at a time, and the first failure is enough: from then on it is tried until it succeeds.
    return {
      ...common,
      debounce,
      key: () => 'reload',
      retry: { maxAttempts: 1 },
      handle: (_, context) => load(context),
    }
  }
  const change = async (event: AnyEvent, context: { signal: AbortSignal }) => {
    await apply(event, context)
    await clear?.()
  }
  // Without `reload` nothing could make up for a change that was passed over.
  const { onStart: _, ...withoutLoad } = common
  return reload === undefined ? { ...withoutLoad, untilDone: true, handle: change } : { ...common, handle: change }
}
