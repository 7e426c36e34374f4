/**
 * Writes checkpoints, one at a time and always the newest. On a quiet system that is one write per event; under load a
 * write is under way while many events pass, and the next one covers them all.
 */
import type { Clock } from '../runtime/index.ts'
import type { Definition } from './definition.ts'

export interface CheckpointWriter {
  /** Something was finished. With `sync` the promise resolves when it is written; otherwise there is nothing to await. */
  finished(): Promise<void> | undefined
  /** Only non-matching events were passed: worth a write now and then. */
  passed(): void
  /** Writes what is not written yet. */
  flush(): Promise<void>
  close(): void
}

export interface CheckpointWriterOptions {
  readonly mode: Definition['checkpoint']
  readonly clock: Clock
  /** Writes how far it is now. */
  readonly save: () => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Writes closer together than this cost more than they save. */
const SPACING_MS = 5
const PASSED_MS = 1_000
/** A write that failed is not tried again at once. */
const AFTER_FAILURE_MS = 500

export function createCheckpointWriter({ mode, clock, save, onError }: CheckpointWriterOptions): CheckpointWriter {
  const delayMs = typeof mode === 'object' ? mode.withinMs : 0
  const every = typeof mode === 'object' ? mode.every : 1
  let dirty = 0
  let writing: Promise<void> | undefined
  let cancel: (() => void) | undefined
  /** When the planned write is due. */
  let dueMs = 0
  let lastWriteMs = Number.NEGATIVE_INFINITY
  let failed = false
  let closed = false
  let passedMeanwhile = false

  function write(): Promise<void> {
    cancel?.()
    cancel = undefined
    const covered = dirty
    dirty = 0
    writing = save()
      .then(
        () => {
          failed = false
        },
        (error) => {
          failed = true
          dirty += Math.max(1, covered)
          throw error
        },
      )
      .finally(() => {
        writing = undefined
        lastWriteMs = clock.monotonic()
        if (dirty > 0) plan()
        else if (passedMeanwhile) planPassed()
      })
    return writing
  }

  /** Worth a write now and then, and one in the end. */
  function planPassed(): void {
    passedMeanwhile = writing !== undefined
    if (closed || dirty > 0 || cancel !== undefined || writing !== undefined) return
    const nowMs = clock.monotonic()
    const waitMs = Math.max(0, PASSED_MS - (nowMs - lastWriteMs))
    dueMs = nowMs + waitMs
    cancel = clock.setTimer(waitMs, () => {
      dirty = Math.max(1, dirty)
      inBackground()
    })
  }

  function inBackground(): void {
    cancel = undefined
    if (writing === undefined && dirty > 0) write().catch(onError)
  }

  function plan(): void {
    if (writing !== undefined || closed) return
    if (cancel !== undefined && (dirty < every || failed)) return
    const nowMs = clock.monotonic()
    const spacing = Math.max(0, (failed ? AFTER_FAILURE_MS : SPACING_MS) - (nowMs - lastWriteMs))
    const waitMs = dirty >= every ? spacing : Math.max(delayMs, spacing)
    // Under load this comes with every event: a timer that is early enough stays.
    if (cancel !== undefined && waitMs > 0 && dueMs <= nowMs + waitMs) return
    cancel?.()
    dueMs = nowMs + waitMs
    if (waitMs <= 0) inBackground()
    else cancel = clock.setTimer(waitMs, inBackground)
  }

  return {
    finished() {
      dirty++
      if (mode === 'sync') return flush()
      plan()
      return undefined
    },
    passed: planPassed,
    flush,
    close() {
      closed = true
      cancel?.()
      cancel = undefined
    },
  }

  async function flush(): Promise<void> {
    while (writing !== undefined) await writing.catch(() => {})
    await write()
  }
}
