/**
 * Timers as work: the input of a timer is applied in the transaction that ends it, under the lock of its instance. One that
 * was cancelled or replaced meanwhile has no row any more, so nothing is applied, whoever had claimed it.
 */
import type { Delivery, RunContext, Work } from '../delivery/index.ts'
import { parseRetry, toMs } from '../runtime/index.ts'
import { chainFrom } from './chain.ts'
import { timerUniqueKey } from './names.ts'
import { createPatience, endingOf, letterEvent, RETRY, type RunningParts, TIMEOUT, whilePaused } from './registered.ts'
import { reportDead } from './report-dead.ts'
import type { NewTimer } from './store.ts'
import { type TimerPayload, toJson } from './to-write.ts'
import type { Workflow } from './workflow.ts'
import { WorkflowPausedError } from './workflow-error.ts'

export function timerWork(workflow: Workflow, parts: RunningParts): Work {
  const patiently = createPatience()
  return {
    kind: 'timer',
    name: workflow.type,
    retry: parseRetry(RETRY),
    timeoutMs: toMs(TIMEOUT, 'timeout'),
    async run(delivery: Delivery, context: RunContext) {
      const payload = delivery.payload as TimerPayload
      const request = {
        ...endingOf(context),
        chain: chainFrom(payload.chain),
        inputId: payload.inputId,
        inputPosition: payload.inputPosition === undefined ? undefined : BigInt(payload.inputPosition),
        notBefore: payload.held ? undefined : payload.due,
        // One that has its place among others keeps it by waiting as it is.
        hold: payload.held === 'in order' ? undefined : asHeld(delivery, payload),
      }
      await patiently(workflow, () => parts.engine.execute(workflow, payload.input, request)).catch((error) => {
        throw error instanceof WorkflowPausedError ? whilePaused({ type: workflow.type, id: delivery.key! }) : error
      })
    },
    toEvent(delivery) {
      const { input, chain } = delivery.payload as TimerPayload
      return letterEvent(workflow, delivery, { id: `timer:${delivery.id}`, type: 'timer', payload: input, chain })
    },
    onDead(tx, delivery, error) {
      const { input, key = null, chain } = delivery.payload as TimerPayload
      const what = { kind: 'timer' as const, input, key }
      return reportDead(workflow, tx, delivery, { error, what, chain, eventId: `timer:${delivery.id}` }, parts)
    },
  }
}

/** The same timer, for when its instance is resumed. */
function asHeld({ id, key }: Delivery, payload: TimerPayload): NewTimer {
  const instance = key!
  const uniqueKey =
    payload.key === undefined
      ? JSON.stringify([instance, 'timer', String(id), 0])
      : timerUniqueKey(instance, payload.key)
  return { uniqueKey, dueMs: Number.POSITIVE_INFINITY, held: true, payload: toJson(payload, 'timer') }
}
