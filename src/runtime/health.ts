import { type Clock, systemClock } from './clock.ts'
import { formatDuration } from './duration.ts'

/**
 * What the probes of an orchestrator are told. Live means: starting this process anew would not help. Ready means: it
 * does its work now. A database that is down makes a process not ready and leaves it live; a loop that is stuck makes
 * it not live; a loop with nothing to do is neither.
 */
export interface Health {
  /** What a part says of itself. The last report under a name counts. */
  report(part: PartHealth): void
  /** A part that must show progress every `allowanceMs`, or count as not live. */
  pulse(name: string, allowanceMs: number): Pulse
  /** Takes a part out, its pulse included; a part that was stopped on purpose is no reason for anything. */
  forget(name: string): void
  check(): HealthReport
}

export interface PartHealth {
  name: string
  live: boolean
  ready: boolean
  /** A whole sentence without a full stop, naming the part. It is shown to probes: no addresses, no data. */
  reason?: string
}

export interface HealthReport {
  live: boolean
  ready: boolean
  /** One per part that is not live or not ready; empty when all is well. */
  reasons: string[]
}

export interface Pulse {
  /** Progress was made, and work goes on. */
  beat(): void
  /** There is nothing to do until further notice: never stale before the next beat. */
  idle(): void
}

export function createHealth({ clock = systemClock }: { clock?: Clock } = {}): Health {
  const parts = new Map<string, PartHealth>()
  const pulses = new Map<string, { allowanceMs: number; busySince: number | undefined }>()

  const staleness = (name: string): PartHealth | undefined => {
    const { busySince, allowanceMs } = pulses.get(name) ?? {}
    if (busySince === undefined || allowanceMs === undefined) return undefined
    const silentMs = clock.monotonic() - busySince
    if (silentMs <= allowanceMs) return undefined
    return { name, live: false, ready: false, reason: `${name} made no progress for ${formatDuration(silentMs)}` }
  }

  return {
    report(part) {
      parts.set(part.name, { ...part })
    },
    pulse(name, allowanceMs) {
      const pulse = { allowanceMs, busySince: clock.monotonic() as number | undefined }
      pulses.set(name, pulse)
      return {
        beat() {
          pulse.busySince = clock.monotonic()
        },
        idle() {
          pulse.busySince = undefined
        },
      }
    },
    forget(name) {
      parts.delete(name)
      pulses.delete(name)
    },
    check() {
      const names = new Set([...parts.keys(), ...pulses.keys()])
      const all = [...names].map((name) => staleness(name) ?? parts.get(name) ?? { name, live: true, ready: true })
      return {
        live: all.every((part) => part.live),
        ready: all.every((part) => part.live && part.ready),
        reasons: all
          .filter((part) => !part.live || !part.ready)
          .map((part) => part.reason ?? `${part.name} is not ${part.live ? 'ready' : 'live'}`),
      }
    },
  }
}
