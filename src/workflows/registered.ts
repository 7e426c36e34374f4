/** A workflow as this process runs it, and what its parts share. */
import type { Delivery, RunContext } from '../delivery/index.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { Transaction } from '../postgres/index.ts'
import type { Logger, Telemetry } from '../runtime/index.ts'
import { NotNow } from '../subscriptions/index.ts'
import type { StoredChain } from './chain.ts'
import type { Engine, ExecuteRequest } from './engine.ts'
import type { InstanceRef, WorkflowStore } from './store.ts'
import type { Workflow } from './workflow.ts'

export interface RunningParts {
  readonly engine: Engine
  readonly store: Pick<WorkflowStore, 'standing' | 'resolveReported'>
  readonly logger: Logger
  readonly storeStacks: boolean
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
}

/** 5 attempts, 1 s doubling to 300 s. */
export const RETRY = { maxAttempts: 5, initialDelay: '1s', maxDelay: '300s' } as const
export const TIMEOUT = '30s'

/** The delivery that brought an input ends with what the input leads to. */
export function endingOf(context: RunContext): Pick<ExecuteRequest, 'alongside' | 'delivery' | 'onFault'> {
  const { claim } = context
  return {
    alongside: (tx: Transaction) => context.complete(tx),
    delivery: claim && { claim, settled: () => context.settled?.() },
    onFault: (error) => context.onFault?.(error),
  }
}

/**
 * In a deployment this process may be the older one, which cannot read what the newer has written: then it is for the newer.
 * For a while nothing of this kind is begun here.
 */
export function createPatience() {
  let restsUntil = Number.NEGATIVE_INFINITY
  return async <T>(workflow: Workflow, step: () => Promise<T>): Promise<T> => {
    if (performance.now() < restsUntil) throw older(workflow)
    try {
      return await step()
    } catch (error) {
      if ((error as { code?: string } | null)?.code !== 'SCHEMA_VERSION_TOO_NEW') throw error
      restsUntil = performance.now() + OLDER_MS
      throw older(workflow, error)
    }
  }
}

const OLDER_MS = 30_000

function older({ type }: Workflow, cause?: unknown): NotNow {
  const message = `An instance of workflow "${type}" was written by newer code than this, so this is left to a process that has it.`
  return new NotNow('SCHEMA_VERSION_TOO_NEW', message, OLDER_MS, { cause })
}

/** It waits as it is, and that costs no attempt. */
export function whilePaused({ type, id }: InstanceRef): NotNow {
  return new NotNow('WORKFLOW_PAUSED', `Workflow ${type}/${id} is paused.`, PAUSED_MS)
}

const PAUSED_MS = 5_000

/** What the dead letter of an effect or a timer shows. Its id is the same for every life of the delivery. */
export function letterEvent(
  workflow: Workflow,
  delivery: Delivery,
  { id, type, payload, chain }: { id: string; type: string; payload: unknown; chain: StoredChain },
): AftercommitEvent {
  return new AftercommitEvent({
    id,
    type: `${workflow.type}.${type}`,
    position: 0n,
    aggregateType: workflow.type,
    aggregateId: delivery.key,
    version: null,
    payload,
    changes: null,
    previous: null,
    tenant: chain.tenant ?? null,
    metadata: {
      correlationId: chain.correlation,
      causationId: chain.causation ?? null,
      userId: chain.user ?? null,
      traceparent: chain.trace ?? null,
      schemaVersion: 1,
      depth: chain.depth ?? 0,
    },
    occurredAt: delivery.createdAt,
    recordedAt: delivery.createdAt,
  })
}
