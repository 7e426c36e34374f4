/** Events of the log as inputs: one subscription per workflow, in order per instance, each event once by its id. */
import type { AnyEvent, StartPoint } from '../log/index.ts'
import { type Definition, toDefinition } from '../subscriptions/index.ts'
import type { RunningParts } from './registered.ts'
import type { Workflow } from './workflow.ts'

/** Undefined for a workflow that no event drives. */
export function logDefinition(
  workflow: Workflow,
  { from = 'head', concurrency = 10 }: { from?: StartPoint | undefined; concurrency?: number | undefined },
  { engine }: Pick<RunningParts, 'engine'>,
): Definition | undefined {
  const { on } = workflow
  if (on === undefined || Object.keys(on).length === 0) return undefined
  const toInput = (event: AnyEvent) => (Object.hasOwn(on, event.type) ? on[event.type]!(event) : undefined)
  return toDefinition({
    id: `workflow:${workflow.type}`,
    on: Object.keys(on),
    from,
    concurrency,
    key(event) {
      const input = toInput(event)
      return input === undefined ? event.key : workflow.id(input)
    },
    /** Rejected and completed are answers too: the event is handled. */
    async handle(event) {
      const input = toInput(event)
      if (input === undefined) return
      await engine.execute(workflow, input, { inputId: event.id, inputPosition: event.position, hold: 'in order' })
    },
  })
}
