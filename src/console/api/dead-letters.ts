/** Dead letters: by cause, one by one, and what an operator does with them. */
import { toEventJson } from '../../events/index.ts'
import type { DeadLetter, LetterFilter } from '../../index.ts'
import { plain, Refusal } from '../answers.ts'
import { actionOf, idsOf, limitOf, oneOf, positionOf, textOf } from '../input.ts'
import type { Route } from '../routes.ts'

const KINDS = ['subscription', 'action', 'effect', 'timer'] as const
const STATUSES = ['dead', 'redriving', 'resolved', 'discarded'] as const
/** A count beyond this says nothing more to a person and costs the database seconds. */
const COUNTED = 1_001

export const deadLetterRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'dead-letters',
    role: 'viewer',
    changes: false,
    summary: 'Dead letters, newest first. Filters: status, kind, owner, key, error, before. `count` stops at 1,001.',
    async answer({ ac, query }) {
      const limit = limitOf(query)
      const filter = filterOf(query)
      const [items, count] = await Promise.all([
        ac.deadLetters.list({ ...filter, limit, before: positionOf(query, 'before') }),
        ac.deadLetters.count({ ...filter, atMost: COUNTED }),
      ])
      const last = items.at(-1)
      return {
        items: items.map(toBrief),
        count,
        next: items.length < limit || last === undefined ? null : String(last.id),
      }
    },
  },
  {
    method: 'GET',
    path: 'dead-letters/causes',
    role: 'viewer',
    changes: false,
    summary: 'Why the newest 10,000 dead letters died, the most frequent cause first.',
    answer: async ({ ac }) => ({ items: plain(await ac.deadLetters.causes()) }),
  },
  {
    method: 'GET',
    path: 'dead-letters/:id',
    role: 'viewer',
    changes: false,
    summary: 'One dead letter; with its event for operators.',
    async answer({ ac, params, user }) {
      const letter = /^\d{1,18}$/.test(params.id!) ? await ac.deadLetters.show(BigInt(params.id!)) : undefined
      if (letter === undefined) throw new Refusal(404, 'NO_SUCH_LETTER', `There is no dead letter ${params.id}.`)
      const isOperator = user.role !== 'viewer'
      return {
        ...toBrief(letter),
        ...(isOperator && { event: toEventJson(letter.event, { reveal: user.role === 'admin' }) }),
      }
    },
  },
  {
    method: 'POST',
    path: 'dead-letters/redrive',
    role: 'operator',
    changes: true,
    summary: 'Has dead letters run again, in order: `ids`, or everything that matches `filter`.',
    answer: async ({ ac, user, body }) => ({ count: await ac.deadLetters.redrive(chosen(body), actionOf(user, body)) }),
  },
  {
    method: 'POST',
    path: 'dead-letters/discard',
    role: 'operator',
    changes: true,
    summary: 'Gives dead letters up: `ids`, or everything that matches `filter`.',
    answer: async ({ ac, user, body }) => ({ count: await ac.deadLetters.discard(chosen(body), actionOf(user, body)) }),
  },
]

function filterOf(query: URLSearchParams): LetterFilter {
  return {
    status: oneOf(query, 'status', STATUSES),
    kind: oneOf(query, 'kind', KINDS),
    owner: textOf(query, 'owner'),
    key: textOf(query, 'key'),
    error: textOf(query, 'error'),
  }
}

function chosen(body: Readonly<Record<string, unknown>>): readonly bigint[] | LetterFilter {
  const { filter } = body
  if (filter === undefined) return idsOf(body)
  if (typeof filter !== 'object' || filter === null) throw new Refusal(400, 'BAD_VALUE', '`filter` must be an object.')
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(filter)) {
    if (!['status', 'kind', 'owner', 'key', 'error'].includes(name))
      throw new Refusal(400, 'BAD_VALUE', `A filter has no ${name}.`)
    words.set(name, String(value))
  }
  // Nothing chosen would mean everything.
  if ([...words].length === 0)
    throw new Refusal(400, 'BAD_VALUE', 'An empty filter stands for every dead letter; name a kind or an owner.')
  return filterOf(words)
}

function toBrief({ event, ...letter }: DeadLetter): Record<string, unknown> {
  return {
    ...(plain(letter) as object),
    event_id: event.id,
    event_type: event.type,
    position: String(event.position),
  }
}
