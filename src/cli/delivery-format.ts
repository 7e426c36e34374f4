/** How deliveries look in a terminal. What they carry is shown by `show` alone. */
import type { DeliveryRecord } from '../index.ts'
import { formatError } from './error-format.ts'
import { formatSpan } from './subscription-format.ts'
import type { Column } from './table.ts'

export const DELIVERY_COLUMNS: readonly Column[] = [
  { title: 'id', align: 'right' },
  { title: 'kind' },
  { title: 'name', min: 8 },
  { title: 'state' },
  { title: 'due', align: 'right' },
  { title: 'attempts', align: 'right' },
  { title: 'destination', min: 8 },
  { title: 'error', min: 8 },
]

export function toDeliveryRow(one: DeliveryRecord): string[] {
  return [
    String(one.id),
    one.kind,
    one.name,
    one.state,
    one.state === 'running' ? '–' : formatDue(one.runAt),
    String(one.attempts),
    one.destination ?? '–',
    one.error === null ? '–' : formatError(one.error),
  ]
}

/** `in 5 min`, or `2 h ago`. */
export function formatDue(time: Date): string {
  const seconds = (time.getTime() - Date.now()) / 1_000
  return seconds > 0 ? `in ${formatSpan(seconds)}` : `${formatSpan(-seconds)} ago`
}
