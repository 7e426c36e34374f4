/** How times, numbers and spans look. Times are UTC unless a person chose otherwise. */

export type TimeForm = 'utc' | 'local' | 'ago'

export function timeForm(): TimeForm {
  return (kept('time') as TimeForm | null) ?? 'utc'
}

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(`aftercommit.${name}`)
  } catch {
    return null
  }
}

export function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`aftercommit.${name}`)
    else localStorage.setItem(`aftercommit.${name}`, value)
  } catch {}
}

export function clock(time: string, form: TimeForm, now: number): string {
  const at = new Date(time)
  if (form === 'ago') return ago(now - at.getTime())
  if (form === 'utc') return at.toISOString().slice(11, 23)
  const two = (n: number) => String(n).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** All three forms, for hovering. */
export function fullTime(time: string, now: number): string {
  const at = new Date(time)
  return `${at.toISOString().replace('T', ' ')}\n${at.toString()}\n${ago(now - at.getTime())}`
}

function ago(ms: number): string {
  return ms < 0 ? `in ${span(-ms)}` : `${span(ms)} ago`
}

export function span(ms: number): string {
  if (ms < 1) return '0 ms'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h ${Math.round((seconds % 3_600) / 60)} min`
  return `${Math.round(seconds / 86_400)} days`
}

/** A thin space per thousand. */
export function number(value: number | string): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009')
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let at = 0
  let left = value
  while (left >= 1_000 && at < units.length - 1) {
    left /= 1_000
    at++
  }
  return `${left < 10 && at > 0 ? left.toFixed(1) : Math.round(left)} ${units[at]}`
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`
}

export function layOut(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? ''
}
