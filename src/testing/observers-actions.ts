/** What observers do, in tests: nothing is sent, what was asked for is written down, and it fails when told to. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import type { ActionRequest, PreparedAction, Preview } from '../observers/index.ts'

/** One attempt at one action, as it was asked for. */
export interface AskedAction {
  readonly observer: string
  readonly action: string
  /** `webhook`, `slack`, … */
  readonly type: string
  readonly event: AnyEvent
  /** 1 for the first. */
  readonly attempt: number
  /** The same over all attempts. */
  readonly idempotencyKey: string
  /** What would have been sent, rendered; secrets are masked. */
  readonly preview: Preview
}

/** In place of the network, the mail server and the database. */
export interface TestActions {
  /** Done when it returns or resolves. Throwing fails the attempt; `GiveUp` and `RetryAfter` are understood. */
  execute(asked: AskedAction): unknown
}

export interface RecordingActions extends TestActions {
  /** Every attempt in order, those that failed too. */
  readonly executions: readonly AskedAction[]
  /** From now on attempts fail: with this message, and then they are tried again, or with an error of your own. */
  failing(failure: string | Error): this
  /** Switches failing on and off. The message stays what it was unless given. */
  setShouldFail(shouldFail: boolean, message?: string): void
}

export function recordingActions(): RecordingActions {
  const executions: AskedAction[] = []
  let shouldFail = false
  let failure: string | Error = 'The action was told to fail.'
  return {
    executions,
    failing(next) {
      shouldFail = true
      failure = next
      return this
    },
    setShouldFail(next, message) {
      shouldFail = next
      failure = message ?? failure
    },
    execute(asked) {
      executions.push(asked)
      if (shouldFail) throw typeof failure === 'string' ? new AftercommitError('OB004', failure) : failure
    },
  }
}

/** The prepared action with its sending taken out: it renders as before, and fails where rendering fails. */
export function withoutSending(
  prepared: PreparedAction,
  type: string,
  execute: (asked: AskedAction) => unknown,
  monotonic: () => number,
): PreparedAction {
  return {
    ...prepared,
    async run(request) {
      const began = monotonic()
      await execute(toAsked(request, type, prepared.preview(request)))
      return { actionType: type, success: true, message: 'recorded', durationMs: monotonic() - began }
    },
  }
}

function toAsked({ observer, action, event, attempt, idempotencyKey }: ActionRequest, type: string, preview: Preview) {
  return { observer, action, type, event, attempt, idempotencyKey, preview }
}
