/**
 * Signals for a command that runs until it is told to stop: SIGTERM and SIGINT ask it to end in order, a second one ends
 * it at once, SIGHUP asks it to read its configuration again.
 */
import { EXIT } from './exit-codes.ts'

export interface ServiceSignals {
  /** Resolves with the first signal that asks to end. */
  readonly asked: Promise<NodeJS.Signals>
  /** From now on SIGHUP calls it; before, it does nothing. */
  onReload(reload: () => void): void
}

export function watchServiceSignals(): ServiceSignals {
  let reload = () => {}
  let isAsked = false
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (isAsked) process.exit(EXIT.interrupted)
        isAsked = true
        resolve(signal)
      })
    }
  })
  process.on('SIGHUP', () => reload())
  return {
    asked,
    onReload(next) {
      reload = next
    },
  }
}
