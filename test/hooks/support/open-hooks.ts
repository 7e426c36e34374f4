/** What tests of hooks share: an instance, a hook that writes down what it was called with, and a way to wait for it. */
import type { HookContext } from '../../../src/hooks/index.ts'
import { eventually } from '../../support/eventually.ts'

export { gate, openSubscriptions as openHooks } from '../../subscriptions/support/open-subscriptions.ts'

export interface Heard {
  readonly id: string
  readonly type: string
  readonly key: string
  readonly attempt: number
  readonly coalesced: number
}

export interface Ear {
  readonly heard: readonly Heard[]
  readonly ids: readonly string[]
  readonly handle: (event: { id: string; type: string; key: string }, context: HookContext) => unknown
  hears(id: string): Promise<void>
}

/** `behave` runs after the call was written down. */
export function ear(behave: (heard: Heard, context: HookContext) => unknown = () => {}): Ear {
  const heard: Heard[] = []
  return {
    heard,
    get ids() {
      return heard.map(({ id }) => id)
    },
    handle({ id, type, key }, context) {
      const call = { id, type, key, attempt: context.attempt, coalesced: context.coalesced }
      heard.push(call)
      return behave(call, context)
    },
    async hears(id) {
      await eventually(() => heard.some((call) => call.id === id), { every: 5 })
    },
  }
}
