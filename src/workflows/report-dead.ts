/** Tells a workflow that an effect or a timer of it became a dead letter, in the transaction that writes the letter. */
import { toErrorRecord } from '../dead-letters/index.ts'
import type { Delivery } from '../delivery/index.ts'
import { classify, type Transaction } from '../postgres/index.ts'
import { chainFrom, type StoredChain } from './chain.ts'
import type { RunningParts } from './registered.ts'
import type { Workflow, WorkflowLetter } from './workflow.ts'

type What =
  WorkflowLetter<unknown, unknown> extends infer L
    ? L extends unknown
      ? Omit<L, 'workflow' | 'error' | 'attempts'>
      : never
    : never

export interface DeadReport {
  readonly error: unknown
  readonly what: What
  readonly chain: StoredChain
  readonly eventId: string
}

/**
 * A workflow that took it deals with it from here on, so the letter is settled. One that cannot be told keeps its letter for
 * somebody to look at: a fault in the workflow must not keep the letter from being written.
 */
export async function reportDead(
  workflow: Workflow,
  tx: Transaction,
  delivery: Delivery,
  { error, what, chain, eventId }: DeadReport,
  { engine, store, logger, storeStacks }: RunningParts,
): Promise<void> {
  if (!workflow.onDeadLetter) return
  const instance = { type: workflow.type, id: delivery.key! }
  const letter = {
    workflow: instance,
    error: toErrorRecord(error, { storeStacks }),
    attempts: delivery.attempt,
    ...what,
  }
  try {
    await tx.savepoint(async () => {
      const input = workflow.onDeadLetter!(letter as WorkflowLetter<unknown, unknown>)
      if (input === undefined) return
      const outcome = await engine.execute(workflow, input, { tx, chain: chainFrom(chain), hold: true })
      if (outcome === undefined || outcome.outcome === 'accepted') {
        await store.resolveReported(tx as never, { kind: what.kind, owner: workflow.type, eventId })
      }
    })
  } catch (fault) {
    if (classify(fault) !== 'permanent') throw fault
    logger.error(
      { err: fault, workflow: workflow.type, workflow_id: instance.id },
      'a workflow could not be told of its dead letter; the letter waits for somebody',
    )
  }
}
