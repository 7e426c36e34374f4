import type { DestinationState } from '../index.ts'
import { formatSpan } from './subscription-format.ts'
import type { Column } from './table.ts'

export const DESTINATION_COLUMNS: readonly Column[] = [
  { title: 'destination', min: 12 },
  { title: 'state' },
  { title: 'next', align: 'right' },
  { title: 'failures', align: 'right' },
  { title: 'running', align: 'right' },
  { title: 'waiting', align: 'right' },
  { title: 'limits', min: 8 },
]

export function toDestinationRow(one: DestinationState): string[] {
  const { state, until } = stateOf(one)
  return [
    one.destination,
    state,
    until === null ? '–' : `in ${formatSpan((until.getTime() - Date.now()) / 1_000)}`,
    String(one.failures),
    String(one.running),
    String(one.waiting),
    formatLimits(one),
  ]
}

/** Nothing is sent there now, or at most a probe. */
export function isHeldBack(one: DestinationState): boolean {
  return stateOf(one).state !== 'well'
}

/** Of several reasons the one that holds it back the longest. */
function stateOf({ paused, circuit, openUntil, restingUntil }: DestinationState): {
  state: string
  until: Date | null
} {
  if (paused) return { state: 'paused', until: null }
  const rests = restingUntil !== null && (openUntil === null || restingUntil >= openUntil)
  if (rests) return { state: 'resting', until: restingUntil }
  if (circuit === 'closed') return { state: 'well', until: null }
  return { state: circuit, until: circuit === 'open' ? openUntil : null }
}

function formatLimits({ concurrency, rate, burst }: DestinationState): string {
  const limits = [
    ...(concurrency === null ? [] : [`${concurrency} at once`]),
    ...(rate === null ? [] : [`${rate}/s${burst === null ? '' : `, burst ${burst}`}`]),
  ]
  return limits.length === 0 ? '–' : limits.join(', ')
}
