import { AftercommitError } from '../../errors.ts'
import { type Clock, formatDuration } from '../../runtime/index.ts'
import type { Sink, SinkMessage } from './sink.ts'

export interface CallSinkParts {
  readonly sink: Sink
  readonly clock: Clock
  /** For one call of the sink. */
  readonly timeoutMs: number
}

/** A call that outlives its time may go on for this long before the same messages are sent beside it. */
const LINGER_MS = 30_000

/** After this time `callSink` has settled, whatever the sink does. */
export function longestCallMs(timeoutMs: number): number {
  return timeoutMs + LINGER_MS
}

/**
 * One call of a sink, with its time. A sink that ignores its signal is waited for a while: two calls at once could mix
 * the order.
 */
export async function callSink(
  { sink, clock, timeoutMs }: CallSinkParts,
  messages: readonly SinkMessage[],
  signal: AbortSignal,
): Promise<void> {
  const late = new AftercommitError(
    'TIMED_OUT',
    `Sink "${sink.name}" had not accepted ${messages.length} messages after ${formatDuration(timeoutMs)}; they are sent again.`,
  )
  const outOfTime = new AbortController()
  const cancels = [clock.setTimer(timeoutMs, () => outOfTime.abort(late))]
  const overdue = new Promise<never>((_, reject) => {
    cancels.push(clock.setTimer(timeoutMs + LINGER_MS, () => reject(late)))
  })
  try {
    const call = (async () => sink.publish(messages, { signal: AbortSignal.any([signal, outOfTime.signal]) }))()
    await Promise.race([call, overdue])
  } catch (error) {
    throw outOfTime.signal.aborted ? late : error
  } finally {
    for (const cancel of cancels) cancel()
  }
}
