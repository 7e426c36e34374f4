/** How instances and their timers look in a terminal. */
import type { InstanceSummary, TimerSummary } from '../index.ts'
import { formatDue } from './delivery-format.ts'
import { formatTime } from './event-format.ts'
import type { Column } from './table.ts'

export const INSTANCE_COLUMNS: readonly Column[] = [
  { title: 'workflow', min: 8 },
  { title: 'id', min: 8 },
  { title: 'status' },
  { title: 'events', align: 'right' },
  { title: 'begun' },
  { title: 'last event' },
  { title: 'unique key', min: 8 },
]

export function toInstanceRow(one: InstanceSummary): string[] {
  return [
    one.type,
    one.id,
    statusOf(one),
    String(one.version),
    formatTime(one.createdAt),
    formatTime(one.lastEventAt),
    one.uniqueKey ?? '–',
  ]
}

export function statusOf({ completed, paused }: InstanceSummary): 'completed' | 'paused' | 'open' {
  if (completed) return 'completed'
  return paused ? 'paused' : 'open'
}

export const TIMER_COLUMNS: readonly Column[] = [
  { title: 'due', align: 'right' },
  { title: 'at' },
  { title: 'workflow', min: 8 },
  { title: 'id', min: 8 },
  { title: 'key', min: 8 },
  { title: 'attempts', align: 'right' },
  { title: 'delivery', align: 'right' },
]

export function toTimerRow({ type, id, key, dueAt, held, attempts, delivery }: TimerSummary): string[] {
  const due = held ? 'held' : formatDue(dueAt)
  return [due, formatTime(dueAt), type, id, key ?? '–', String(attempts), String(delivery)]
}
