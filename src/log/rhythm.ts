/**
 * When the tailer reads next: pure decisions about bell and poll. States:
 *
 *   polling ──quiet──▶ arming ──everybody who appended before the mark has ended──▶ armed
 *      ▲                  │                                                            │
 *      └──────────────────┴───── busy, or the bell cannot be heard ────────────────────┘
 *
 * armed    the process has an idle mark in the database: every commit rings it. The normal state of a quiet system; a
 *          slow fallback poll guards against a bell that got lost with its socket.
 * polling  no mark, no NOTIFY at all: a read every few milliseconds. Under load this is cheaper for everybody, since a
 *          NOTIFY per commit serialises commits (docs/decisions/0002).
 * arming   the mark is written; writers that looked before it was there may still commit silently, so polling goes on
 *          until they have ended.
 *
 * A hole is polled for in any state: the rollback that ends it rings nobody.
 */
export type RhythmState = 'polling' | 'arming' | 'armed'

export interface RhythmSettings {
  /** Poll this often while events flow or a hole is open. */
  readonly busyPollMs: number
  /** Back off to this while arming, or while a hole stays open. */
  readonly slowPollMs: number
  /** Armed: the safety net. */
  readonly fallbackPollMs: number
  /** Without a bell, the longest time between two reads. */
  readonly idlePollMs: number
  /** More rings per second than this, and polling is cheaper. */
  readonly disarmAbove: number
  /** Fewer non-empty reads per second than this, and the bell is worth it. */
  readonly armBelow: number
}

export const RHYTHM: RhythmSettings = {
  busyPollMs: 8,
  slowPollMs: 50,
  fallbackPollMs: 1_500,
  idlePollMs: 500,
  disarmAbove: 100,
  armBelow: 40,
}

export interface Rhythm {
  readonly state: RhythmState
  /** A notification came. */
  rang(nowMs: number): void
  /** A read is done; `found` counts events. */
  read(outcome: { found: number; blocked: boolean }, nowMs: number): void
  /** What to do before the next read. `mayArm`: the bell is wanted and its connection works. */
  next(mayArm: boolean, nowMs: number): { waitMs: number; change?: 'arm' | 'disarm' }
  armed(): void
  /** The mark was written and its writers are being waited for. */
  arming(): void
  /** Back to polling, whatever the reason. */
  disarmed(nowMs: number): void
}

const WINDOW_MS = 1_000

export function createRhythm(settings: RhythmSettings = RHYTHM): Rhythm {
  let state: RhythmState = 'polling'
  let rings: number[] = []
  let finds: number[] = []
  let pollingSince = Number.NEGATIVE_INFINITY
  let lastRead = Number.NEGATIVE_INFINITY
  let emptyReads = 0
  let blocked = false

  /** A ring buffer would do; these hold at most a few hundred numbers. */
  const recent = (times: number[], nowMs: number) => {
    let first = 0
    while (first < times.length && times[first]! <= nowMs - WINDOW_MS) first++
    return first === 0 ? times : times.slice(first)
  }

  return {
    get state() {
      return state
    },
    rang(nowMs) {
      rings = recent(rings, nowMs)
      rings.push(nowMs)
    },
    read(outcome, nowMs) {
      const since = nowMs - lastRead
      lastRead = nowMs
      blocked = outcome.blocked
      emptyReads = outcome.found > 0 ? 0 : emptyReads + 1
      if (outcome.found === 0) return
      finds = recent(finds, nowMs)
      // A read that was put off stands for those that would have been: else few reads would look like few commits.
      const missed = Number.isFinite(since) ? Math.round(since / settings.busyPollMs) : 1
      const count = Math.min(outcome.found, Math.max(1, missed), settings.armBelow)
      for (let n = 0; n < count; n++) finds.push(nowMs)
    },
    next(mayArm, nowMs) {
      rings = recent(rings, nowMs)
      finds = recent(finds, nowMs)
      const backOff = Math.min(settings.busyPollMs * 2 ** Math.floor(emptyReads / 8), settings.slowPollMs)
      if (state !== 'polling' && !mayArm) return { waitMs: settings.busyPollMs, change: 'disarm' }
      if (state !== 'polling' && rings.length > settings.disarmAbove) {
        return { waitMs: settings.busyPollMs, change: 'disarm' }
      }
      if (state === 'armed') return { waitMs: blocked ? backOff : settings.fallbackPollMs }
      if (state === 'arming') return { waitMs: backOff }
      const quiet = finds.length < settings.armBelow && nowMs - pollingSince >= WINDOW_MS
      if (mayArm && quiet) return { waitMs: 0, change: 'arm' }
      if (mayArm || blocked) return { waitMs: backOff }
      // Nobody will ring: read soon after something came, then less and less often.
      return { waitMs: Math.min(settings.busyPollMs * 2 ** Math.floor(emptyReads / 12), settings.idlePollMs) }
    },
    arming() {
      state = 'arming'
      emptyReads = 0
    },
    armed() {
      state = 'armed'
    },
    disarmed(nowMs) {
      state = 'polling'
      pollingSince = nowMs
      rings = []
    },
  }
}
