/** Tells a workflow that an effect of it was cancelled, in the transaction that ends the effect. */
import { toErrorRecord } from '../dead-letters/index.ts'
import type { Delivery, RunContext } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { chainFrom } from './chain.ts'
import { endingOf, type RunningParts } from './registered.ts'
import type { Cancelled, EffectPayload } from './to-write.ts'
import type { Workflow, WorkflowLetter } from './workflow.ts'

/** A workflow without `onDeadLetter` hears nothing: the line in the log says what was cancelled and why. */
export async function reportCancelled(
  workflow: Workflow,
  delivery: Delivery,
  context: RunContext,
  { attempts, reason }: Cancelled,
  { engine, logger, storeStacks }: RunningParts,
): Promise<void> {
  const { id, name, effect, chain } = delivery.payload as EffectPayload
  const instance = { type: workflow.type, id: delivery.key! }
  logger.info(
    { workflow: instance.type, workflow_id: instance.id, effect: name, delivery: String(delivery.id), reason },
    'an effect was cancelled',
  )
  const error = new AftercommitError(
    'EFFECT_CANCELLED',
    `Effect "${name}" of workflow ${instance.type}/${instance.id} was cancelled, so it is not done: ${reason}.`,
  )
  const letter: WorkflowLetter<unknown, unknown> = {
    kind: 'effect',
    workflow: instance,
    effect,
    idempotencyKey: id,
    error: toErrorRecord(error, { storeStacks }),
    attempts,
  }
  const input = workflow.onDeadLetter?.(letter)
  if (input === undefined) return
  await engine.execute(workflow, input, { ...endingOf(context), chain: chainFrom(chain), hold: true })
}
