/** Faults of the framework, apart from the three outcomes of an input. */
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'

/** Another instance that is not over has the unique key. */
export class UniqueKeyTakenError extends AftercommitError {
  readonly workflowType: string
  readonly workflowId: string
  readonly uniqueKey: string
  /** The instance that has it. */
  readonly holder: string

  constructor(workflow: { type: string; id: string }, uniqueKey: string, holder: string, cause?: unknown) {
    super(
      'UNIQUE_KEY_TAKEN',
      `Workflow ${workflow.type}/${workflow.id} cannot have the unique key ${JSON.stringify(uniqueKey)}: ` +
        `${workflow.type}/${holder} has it and is not over. Nothing was written. Address that instance, or wait for its end.`,
      cause === undefined ? undefined : { cause },
    )
    this.workflowType = workflow.type
    this.workflowId = workflow.id
    this.uniqueKey = uniqueKey
    this.holder = holder
  }
}

/** An event of the history that the code at hand cannot read or apply. */
export class UndecodableEventError extends AftercommitError {
  readonly workflowType: string
  readonly workflowId: string
  readonly version: number
  readonly eventType: string

  constructor(workflow: { type: string; id: string }, event: { type: string; version: number }, cause: unknown) {
    super(
      'UNDECODABLE',
      `Event ${event.version} of workflow ${workflow.type}/${workflow.id} ("${event.type}") cannot be read by this code, ` +
        'so the instance cannot go on. Make `evolve` or the upcast step accept it; the cause has the error.',
      { cause },
    )
    this.workflowType = workflow.type
    this.workflowId = workflow.id
    this.version = event.version
    this.eventType = event.type
  }
}

/** An operator paused the instance. */
export class WorkflowPausedError extends AftercommitError {
  readonly workflowType: string
  readonly workflowId: string

  constructor(workflow: { type: string; id: string }) {
    super(
      'WORKFLOW_PAUSED',
      `Workflow ${workflow.type}/${workflow.id} is paused, so the input was not taken. Try again when it was resumed.`,
    )
    this.workflowType = workflow.type
    this.workflowId = workflow.id
  }
}

export function unknownWorkflow(type: string, known: Iterable<string>): AftercommitError {
  const near = closest(type, known)
  return new AftercommitError(
    'UNKNOWN_WORKFLOW',
    `No workflow of type ${JSON.stringify(type)} is registered in this process, so nothing was done. ` +
      (near === undefined ? 'Register it first.' : `Did you mean "${near}"?`),
  )
}

export function historyLost(workflow: { type: string; id: string }, missing: number): AftercommitError {
  return new AftercommitError(
    'HISTORY_LOST',
    `Event ${missing} of workflow ${workflow.type}/${workflow.id} is not in the log any more, so its state cannot be known. ` +
      'It was removed by retention or by hand; raise `log.retention`, or restore the event.',
  )
}

export function badDecision(workflow: { type: string; id: string }, fault: string): AftercommitError {
  return new AftercommitError(
    'BAD_DECISION',
    `\`decide\` of workflow ${workflow.type}/${workflow.id} ${fault}, so nothing was written.`,
  )
}
