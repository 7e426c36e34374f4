/** A sink for tests: keeps what it is given, and fails or hangs on demand. */
import { AftercommitError } from '../../errors.ts'
import type { Sink, SinkFeatures, SinkMessage } from './sink.ts'

export interface MemorySink extends Sink {
  /** What was accepted, in order; with `deduplicating`, each id once. */
  readonly messages: readonly SinkMessage[]
  /** Calls so far, failed ones included: the ids of each. */
  readonly calls: readonly (readonly string[])[]
  readonly closed: boolean
  /** The next calls reject without accepting anything. */
  failNext(times: number, error?: unknown): void
  /** Rejects every call with such a message in it; what comes before it in the call is accepted. */
  refuse(when: (message: SinkMessage) => boolean, error?: unknown): void
  /** Calls wait, until the function that this gives is called or their signal fires. */
  hang(): () => void
  clear(): void
}

export interface MemorySinkOptions {
  readonly name?: string
  readonly deduplicating?: boolean
}

export function memorySink({ name = 'memory', deduplicating = false }: MemorySinkOptions = {}): MemorySink {
  const features: SinkFeatures = { ordered: true, persistent: false, deduplicating }
  let messages: SinkMessage[] = []
  let calls: string[][] = []
  let failures: { left: number; error: unknown } = { left: 0, error: undefined }
  let refusal: { when: (message: SinkMessage) => boolean; error: unknown } | undefined
  let held: Promise<void> | undefined
  let closed = false

  function accept(message: SinkMessage): void {
    if (refusal?.when(message)) throw refusal.error
    if (!deduplicating || !messages.some(({ id }) => id === message.id)) messages.push(message)
  }

  return {
    name,
    features,
    get messages() {
      return messages
    },
    get calls() {
      return calls
    },
    get closed() {
      return closed
    },
    async publish(batch, { signal }) {
      if (closed) throw new AftercommitError('STOPPED', `Sink "${name}" was closed, so nothing was published.`)
      calls.push(batch.map(({ id }) => id))
      if (held) await Promise.race([held, aborted(signal)])
      signal.throwIfAborted()
      if (failures.left > 0) {
        failures.left--
        throw failures.error
      }
      for (const message of batch) accept(message)
    },
    close() {
      closed = true
    },
    failNext(times, error = new Error(`sink "${name}" was told to fail`)) {
      failures = { left: times, error }
    },
    refuse(when, error = new Error(`sink "${name}" was told to refuse a message`)) {
      refusal = { when, error }
    },
    hang() {
      let release = () => {}
      held = new Promise((resolve) => {
        release = () => {
          held = undefined
          resolve()
        }
      })
      return release
    },
    clear() {
      messages = []
      calls = []
    },
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
