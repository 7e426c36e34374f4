import { AftercommitError } from '../errors.ts'

/**
 * A span of time as users write it: one number with a unit (`250ms`, `1.5s`, `5m`, `2h`, `1d`) or ISO 8601 up to days
 * (`PT5M`, `PT1H30M`, `P1D`). A bare number is refused: half of its readers would think of seconds.
 */
export type Duration = string

/** `setting` is the name the user knows (`retry.initialDelay`); the error leads back to it. */
export function toMs(value: Duration, setting: string): number {
  const ms = typeof value === 'string' ? (parseShort(value) ?? parseIso(value)) : undefined
  if (ms === undefined) {
    throw new AftercommitError(
      'BAD_DURATION',
      `${setting} is ${show(value)}, which is not a duration. ${HOW_TO_WRITE_ONE}`,
    )
  }
  if (ms > LONGEST_MS) {
    throw new AftercommitError(
      'BAD_DURATION',
      `${setting} is ${show(value)}, which is more than 100 years. Write a shorter one, at most "36500d".`,
    )
  }
  // Finer than a millisecond is rounded, but never down to zero: a poll every 0.1 ms must not become a busy loop.
  return ms === 0 ? 0 : Math.max(1, Math.round(ms))
}

/** For people: `250 ms`, `1.5 s`, `40 s`, `5 min 30 s`, `2 h`, `3 d 4 h`. Two units at most. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return twoUnits(seconds, 60, 'min', 's')
  const minutes = Math.round(seconds / 60)
  if (minutes < 1440) return twoUnits(minutes, 60, 'h', 'min')
  return twoUnits(Math.round(minutes / 60), 24, 'd', 'h')
}

const HOW_TO_WRITE_ONE = 'Write a number and a unit, like "250ms", "30s", "5m", "2h" or "1d", or ISO 8601, like "PT5M".'
const LONGEST_MS = 36_500 * 86_400_000
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const SHORT = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const ISO = /^P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/

function parseShort(text: string): number | undefined {
  const match = SHORT.exec(text)
  return match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : undefined
}

function parseIso(text: string): number | undefined {
  const match = ISO.exec(text)
  if (!match) return undefined
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0))
  return days! * UNIT_MS.d + hours! * UNIT_MS.h + minutes! * UNIT_MS.m + seconds! * UNIT_MS.s
}

function twoUnits(count: number, size: number, large: string, small: string): string {
  const rest = count % size
  return `${Math.floor(count / size)} ${large}${rest > 0 ? ` ${rest} ${small}` : ''}`
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  return typeof value === 'number' ? `the number ${value}` : `of type ${value === null ? 'null' : typeof value}`
}
