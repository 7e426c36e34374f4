/** Dead letters in a terminal and as JSON. Lists say nothing of what an event carries; `show` and `export` do. */
import type { DeadLetter } from '../dead-letters/index.ts'
import { toEventJson, toPlain } from '../events/index.ts'
import { formatError } from './error-format.ts'
import { toBrief } from './event-format.ts'
import { formatSpan } from './subscription-format.ts'
import type { Column } from './table.ts'

export const LETTER_COLUMNS: readonly Column[] = [
  { title: 'id', align: 'right' },
  { title: 'owner', min: 8 },
  { title: 'event', min: 8 },
  { title: 'key', min: 6 },
  { title: 'attempts' },
  { title: 'error', min: 8 },
  { title: 'waiting', align: 'right' },
  { title: 'status' },
]

export function toLetterRow(letter: DeadLetter): string[] {
  const secondsAgo = (Date.now() - letter.lastAttemptAt.getTime()) / 1_000
  return [
    String(letter.id),
    letter.owner,
    letter.event.type,
    letter.key,
    `${letter.attempts}, ${formatSpan(secondsAgo)} ago`,
    formatError(letter.error),
    String(letter.waiting),
    letter.status,
  ]
}

export function toBriefLetter({ event, ...letter }: DeadLetter): object {
  return { ...plainOf(letter), event: toBrief(event) }
}

export function toFullLetter({ event, ...letter }: DeadLetter, { reveal = false } = {}): object {
  return { ...plainOf(letter), event: toEventJson(event, { reveal }) }
}

function plainOf(letter: Omit<DeadLetter, 'event'>): object {
  return toPlain(letter) as object
}
