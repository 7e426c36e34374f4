/**
 * Effects as work: the handler is called with the effect, and what it returns is an input, applied in the transaction that
 * ends the effect. A process that dies in between does the effect again, with the same idempotency key.
 */
import type { Delivery, RunContext, Work } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { messagingAttributes, parseRetry, runWithCause, toMs } from '../runtime/index.ts'
import { NotNow } from '../subscriptions/index.ts'
import { causeFrom, chainFrom } from './chain.ts'
import { effectWorkName } from './names.ts'
import { createPatience, endingOf, letterEvent, RETRY, type RunningParts, TIMEOUT, whilePaused } from './registered.ts'
import { reportCancelled } from './report-cancelled.ts'
import { reportDead } from './report-dead.ts'
import type { EffectPayload } from './to-write.ts'
import type { EffectContext, EffectHandler, EffectWork, Workflow } from './workflow.ts'

type AnyHandler = EffectHandler<unknown, unknown> | EffectWork<unknown, unknown> | 'elsewhere'

/** One for each name of effects that this process does; one for all of them where they go in order. */
export function effectWorks(
  workflow: Workflow,
  handlers: Readonly<Record<string, AnyHandler>>,
  parts: RunningParts,
): Work[] {
  const works = new Map<string, Work>()
  for (const [name, handler] of Object.entries(handlers)) {
    if (handler === 'elsewhere') continue
    works.set(name, toWork(workflow, name, typeof handler === 'function' ? { handle: handler } : handler, parts))
  }
  const [first] = works.values()
  if (!workflow.orderedEffects || first === undefined) return [...works.values()]
  if (works.size < Object.keys(handlers).length) throw orderedElsewhere(workflow)
  const nameOf = ({ payload }: Delivery) => (payload as EffectPayload).name
  return [
    { ...first, of: (delivery) => works.get(nameOf(delivery)) ?? strangerWork(workflow, nameOf(delivery), parts) },
  ]
}

/** Of a newer release, or renamed since: whoever has a handler for it does it. */
function strangerWork(workflow: Workflow, name: string, parts: RunningParts): Work {
  const message = `This process has no handler for the effect "${name}" of workflow "${workflow.type}", so it is left to one that has.`
  const handle = () => {
    throw new NotNow('NO_HANDLER', message, STRANGER_MS)
  }
  return toWork(workflow, name, { handle }, parts)
}

const STRANGER_MS = 5_000

function toWork(
  workflow: Workflow,
  name: string,
  { handle, retry, timeout }: EffectWork<unknown, unknown>,
  parts: RunningParts,
): Work {
  const { engine, store } = parts
  const setting = `${workflow.type}.effects.${name}`
  const endsWithLife = workflow.effectsOnCompletion !== 'run'
  const patiently = createPatience()

  async function run(delivery: Delivery, context: RunContext): Promise<void> {
    const payload = delivery.payload as EffectPayload
    const instance = { type: workflow.type, id: delivery.key! }
    const { cancelled } = payload
    if (cancelled) return patiently(workflow, () => reportCancelled(workflow, delivery, context, cancelled, parts))
    // A fresh effect begins with the step that asked for it: the instance cannot have been paused or ended since.
    const standing = delivery.fresh ? 'open' : await store.standing(instance, payload.generation)
    if (standing === 'over' && endsWithLife && !payload.closing) {
      const attempts = delivery.attempt - 1
      const ended = {
        attempts,
        reason: `its instance was over before ${attempts === 0 ? 'it' : 'its next attempt'} began`,
      }
      return patiently(workflow, () => reportCancelled(workflow, delivery, context, ended, parts))
    }
    if (standing === 'paused') throw whilePaused(instance)
    await patiently(workflow, async () => {
      const told = toContext(workflow, delivery, payload, context)
      const call = () => handle(payload.effect, told)
      const input: unknown = await runWithCause(causeFrom(payload.chain), () => traced(payload, call))
      if (input === undefined) return
      await engine.execute(workflow, input, { ...endingOf(context), chain: chainFrom(payload.chain), hold: true })
    })
  }

  function traced(payload: EffectPayload, call: () => unknown): unknown {
    const { tracing } = parts
    if (tracing === undefined) return call()
    const { traceparent } = causeFrom(payload.chain)
    const attributes = messagingAttributes('attempt', [{ id: payload.id, type: `${workflow.type}.${name}` }])
    return tracing.span(`attempt ${workflow.type}/${name}`, attributes, traceparent ? [traceparent] : [], call)
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

function orderedElsewhere({ type }: Workflow): AftercommitError {
  return new AftercommitError(
    'BAD_DEFINITION',
    `Workflow "${type}" has \`orderedEffects\`, so one process does all effects of an instance, one after the other: ` +
      "none can be 'elsewhere'. Give a handler for each of them, or register the workflow without `effects` here.",
  )
}
