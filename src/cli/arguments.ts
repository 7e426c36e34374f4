/** Turns words of the command line into values, or says what was expected. commander puts the option's name before it. */
import { InvalidArgumentError } from 'commander'
import type { StartPoint } from '../index.ts'
import { toMs } from '../runtime/index.ts'

/** For options that may be given several times, or with several values. */
export function collect(value: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), ...value.split(',').filter((part) => part !== '')]
}

export function toCount(most: number): (text: string) => number {
  return (text) => {
    const count = Number(text)
    if (/^\d+$/.test(text) && count >= 1 && count <= most) return count
    throw new InvalidArgumentError(`Give a whole number from 1 to ${most}.`)
  }
}

export function toVersion(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Give a whole number; 0 for a stream that must not exist yet.')
}

export function toPid(text: string): number {
  const pid = Number(text)
  if (/^\d+$/.test(text) && pid >= 1 && pid <= 2_147_483_647) return pid
  throw new InvalidArgumentError('Give the process id of a session on the server, a whole number.')
}

export function toAggregate(text: string): { type: string; id: string } {
  const slash = text.indexOf('/')
  if (slash > 0 && slash < text.length - 1) return { type: text.slice(0, slash), id: text.slice(slash + 1) }
  throw new InvalidArgumentError('Give type and id with a slash between them, like order/42.')
}

export function toDuration(text: string): number {
  try {
    return toMs(text, 'it')
  } catch {
    throw new InvalidArgumentError('Give a duration like 30s, 5m or 2h.')
  }
}

/** A time, or how long ago. */
export function toTime(text: string): Date {
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Date.now() - toMsOrNaN(text))
  if (Number.isFinite(time.getTime())) return time
  throw new InvalidArgumentError('Give how long ago, like 30m, 2h or 1d, or a time like 2026-01-31T12:00:00Z.')
}

export function toStartPoint(text: string): StartPoint {
  if (text === 'start' || text === 'head') return text
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('Give start, head, or the position to begin after.')
}

function toMsOrNaN(text: string): number {
  try {
    return toMs(text, 'it')
  } catch {
    return Number.NaN
  }
}

export function toPort(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('Give a port from 0 to 65535.')
}
