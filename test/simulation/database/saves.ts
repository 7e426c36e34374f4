/** Checkpoints: src/subscriptions/statements.ts, save-statements.ts, and sql/subscriptions/save_checkpoint.sql. */
import type { Parameter } from '../../../src/postgres/index.ts'
import { changed, rowsOf, sqlError, valueAs } from './answers.ts'
import { parseRanges } from './ranges.ts'
import { type AddedRow, addDelivery, laneOf, makeDelivery, putLetter } from './rows.ts'
import type { Statement } from './statements.ts'
import type { Store } from './store.ts'
import type { LaneRow, PartitionRow } from './tables.ts'

export interface Moved {
  readonly position: number
  readonly done: string
  readonly lastEventId?: Parameter | undefined
}

/** Every statement that moves a checkpoint moves it so. */
export function move(store: Store, partition: PartitionRow, term: Parameter, to: Moved): void {
  if (partition.position < to.position) partition.deaths = 0
  partition.position = to.position
  partition.done = parseRanges(to.done)
  if (to.lastEventId !== undefined && to.lastEventId !== null) partition.lastEventId = to.lastEventId as string
  store.witness.onCheckpoint(partition.id, Number(term))
}

export const SAVES = {
  saveCheckpoint: {
    says: /save = coalesce\(\(/,
    run(store, [id, term, position, done, lastEventId, server, number]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return changed(0)
      if (number !== null && !isNew(store, partition, number!)) return changed(0)
      if (number !== null) partition.save = Number(number)
      move(store, partition, term!, { position: Number(position), done: done as string, lastEventId })
      return changed(1)
    },
  },
  isSaved: {
    says: /^select exists \( select from \S+ where id = .* and save >= /,
    run(store, [id, term, number, server]) {
      const partition = store.ours(id as string, term as string, server as string)
      return valueAs('saved', partition !== undefined && partition.save >= Number(number))
    },
  },
  save: {
    says: /\.save_checkpoint\(/,
    run(store, [id, term, server, number, position, done, lastEventId, leftText]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return valueAs('saved', false)
      if (!isNew(store, partition, number!)) return valueAs('saved', true)
      const left = JSON.parse(leftText as string) as Left
      refuseContent(left)
      partition.save = Number(number)
      partition.settled = JSON.stringify(left.settled)
      const lanes = left.lanes.map((lane) => laneOf(store, lane))
      for (const row of left.rows) {
        addDelivery(store, lanes[row.lane - 1]!, row)
        store.witness.onLeft('row', row.owner, row.event_id, Number(term))
      }
      for (const letter of left.letters) addLetter(store, lanes[letter.lane - 1]!, letter, Number(term))
      if (left.rows.length > 0) store.witness.onBell()
      for (const letter of store.letters)
        if (left.resolved.includes(letter.id) && letter.status === 'redriving') letter.status = 'resolved'
      store.parked = store.parked.filter((one) => one.owner !== id || !left.waited.includes(one.position))
      move(store, partition, term!, { position: Number(position), done: done as string, lastEventId })
      return valueAs('saved', true)
    },
  },
  countTry: {
    says: /set tries = case when trying = /,
    run(store, [id, term, trying, position, done, server]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return rowsOf([])
      partition.tries = partition.trying === Number(trying) ? partition.tries + 1 : 1
      partition.trying = Number(trying)
      partition.position = Number(position)
      partition.done = parseRanges(done as string)
      store.witness.onCheckpoint(partition.id, Number(term))
      return rowsOf([{ tries: partition.tries }])
    },
  },
  saveStatus: {
    says: /select exists \(select from ours\) as ours/,
    run(store, [id, term, status, reason]) {
      const isOurs = store.ours(id as string, term as string) !== undefined
      const subscription = store.subscriptions.get(id as string)!
      if (isOurs && subscription.status !== 'stopped') {
        subscription.status = status as string
        subscription.reason = reason as string | null
      }
      return valueAs('ours', isOurs)
    },
  },
} satisfies Record<string, Statement>

/** Nothing was written under this number or a later one. */
function isNew(store: Store, partition: PartitionRow, number: Parameter): boolean {
  return store.isOff('save number') || partition.save < Number(number)
}

interface Left {
  readonly lanes: Omit<LaneRow, 'lane'>[]
  readonly rows: AddedRow[]
  readonly letters: LeftLetter[]
  readonly runs: unknown[]
  readonly settled: object
  readonly resolved: readonly number[]
  readonly waited: readonly number[]
}

interface LeftLetter {
  readonly lane: number
  readonly kind: string
  readonly owner: string
  readonly key: string
  readonly order_key?: string
  readonly event_id: string
  readonly position: string
  readonly event: object
  readonly error: object
  readonly attempts: number
  readonly ordered: boolean
  readonly payload?: unknown
}

/** Errors of calls whose row or run record the server refuses. */
export const REFUSED = { row: 'a refused row', run: 'a refused run' } as const

function refuseContent({ rows, runs }: Left): void {
  if (rows.some(({ error }) => error?.message === REFUSED.row)) throw sqlError('54000', 'a row exceeds a limit')
  if (JSON.stringify(runs).includes(REFUSED.run)) throw sqlError('23514', 'a run record violates a check constraint')
}

function addLetter(store: Store, lane: number, letter: LeftLetter, term: number): void {
  const { owner, event_id, payload } = letter
  const row = { owner, key: letter.order_key, ordered: letter.ordered, event_id, payload }
  putLetter(store, {
    kind: letter.kind,
    owner,
    key: letter.key,
    eventId: event_id,
    position: Number(letter.position),
    event: JSON.stringify(letter.event),
    error: JSON.stringify(letter.error),
    attempts: letter.attempts,
    parks: letter.ordered,
    delivery: payload === undefined ? null : makeDelivery(store, lane, row),
  })
  store.witness.onLeft('letter', owner, event_id, term)
}
