/**
 * Effects as work: the handler is called with the effect, and what it returns is an input, applied in the transaction that
 * ends the effect. A process that dies in between does the effect again, with the same idempotency key.
 */
import type { Delivery, RunContext, Work } from '../delivery/index.ts'
import { parseRetry, runWithCause, toMs } from '../runtime/index.ts'
import { causeFrom, chainFrom } from './chain.ts'
import { effectWorkName } from './names.ts'
import { endingOf, letterEvent, RETRY, type RunningParts, TIMEOUT } from './registered.ts'
import { reportDead } from './report-dead.ts'
import type { EffectPayload } from './to-write.ts'
import type { EffectContext, EffectHandler, EffectWork, Workflow } from './workflow.ts'

type AnyHandler = EffectHandler<unknown, unknown> | EffectWork<unknown, unknown> | 'elsewhere'

/** One for each name of effects that this process does. */
export function effectWorks(
  workflow: Workflow,
  handlers: Readonly<Record<string, AnyHandler>>,
  parts: RunningParts,
): Work[] {
  const mine = new Map<string, EffectWork<unknown, unknown>>()
  for (const [name, handler] of Object.entries(handlers)) {
    if (handler !== 'elsewhere') mine.set(name, typeof handler === 'function' ? { handle: handler } : handler)
  }
  if (workflow.orderedEffects) return mine.size === 0 ? [] : [toWork(workflow, 'effects', mine, {}, parts)]
  return [...mine].map(([name, work]) => toWork(workflow, name, mine, work, parts))
}

function toWork(
  workflow: Workflow,
  name: string,
  handlers: ReadonlyMap<string, EffectWork<unknown, unknown>>,
  { retry, timeout }: Partial<EffectWork<unknown, unknown>>,
  parts: RunningParts,
): Work {
  const { engine, store } = parts
  const setting = `${workflow.type}.effects.${name}`

  async function run(delivery: Delivery, context: RunContext): Promise<void> {
    const payload = delivery.payload as EffectPayload
    const id = delivery.key!
    const mayBeOver = workflow.effectsOnCompletion === 'cancel'
    if (mayBeOver && (await store.isOver({ type: workflow.type, id }, payload.generation))) return
    const handler = handlers.get(payload.name)
    if (!handler)
      throw new Error(`There is no handler for the effect "${payload.name}" of workflow "${workflow.type}".`)
    const told = toContext(workflow, delivery, payload, context)
    const input: unknown = await runWithCause(causeFrom(payload.chain), () => handler.handle(payload.effect, told))
    if (input === undefined) return
    await engine.execute(workflow, input, {
      ...endingOf(context),
      chain: chainFrom(payload.chain),
      hold: true,
    })
  }

  return {
    kind: 'effect',
    name: effectWorkName(workflow.type, name, workflow.orderedEffects ?? false),
    retry: parseRetry(retry ?? RETRY, `${setting}.retry`),
    timeoutMs: toMs(timeout ?? TIMEOUT, `${setting}.timeout`),
    run,
    toEvent(delivery) {
      const { id, name: type, effect, chain } = delivery.payload as EffectPayload
      return letterEvent(workflow, delivery, { id, type, payload: effect, chain })
    },
    onDead(tx, delivery, error) {
      const { id, effect, chain } = delivery.payload as EffectPayload
      const what = { kind: 'effect' as const, effect, idempotencyKey: id }
      return reportDead(workflow, tx, delivery, { error, what, chain, eventId: id }, parts)
    },
  }
}

/** The signal is looked at only by who wants it. */
function toContext(
  { type }: Workflow,
  { key, attempt, createdAt }: Delivery,
  { id }: EffectPayload,
  run: RunContext,
): EffectContext {
  return {
    idempotencyKey: id,
    workflow: { type, id: key! },
    attempt,
    isRetry: attempt > 1,
    createdAt,
    get signal() {
      return run.signal
    },
  }
}
