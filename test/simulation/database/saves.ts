/** Checkpoints: src/subscriptions/statements.ts, save-statements.ts, and sql/subscriptions/save_checkpoint.sql. */
import type { Parameter } from '../../../src/postgres/index.ts'
import { changed, rowsOf, sqlError, valueAs } from './answers.ts'
import { parseRanges } from './ranges.ts'
import type { Statement } from './statements.ts'
import type { Store } from './store.ts'
import type { PartitionRow } from './tables.ts'

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
    writes: true,
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
    writes: true,
    run(store, [id, term, server, number, position, done, lastEventId, leftText]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return valueAs('saved', false)
      if (!isNew(store, partition, number!)) return valueAs('saved', true)
      const left = JSON.parse(leftText as string) as Left
      refuseContent(left)
      partition.save = Number(number)
      partition.settled = JSON.stringify(left.settled)
      for (const row of left.rows) {
        const { owner, event_id: eventId, key = null, attempts = 0 } = row
        store.deliveries.push({ owner, key, eventId, attempts })
        store.witness.onLeft('row', owner, eventId)
      }
      for (const letter of left.letters) addLetter(store, letter)
      move(store, partition, term!, { position: Number(position), done: done as string, lastEventId })
      return valueAs('saved', true)
    },
  },
  countTry: {
    says: /set tries = case when trying = /,
    writes: true,
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
  readonly rows: { owner: string; key?: string; event_id: string; attempts?: number; payload: unknown }[]
  readonly letters: LeftLetter[]
  readonly runs: unknown[]
  readonly settled: object
}

interface LeftLetter {
  readonly kind: string
  readonly owner: string
  readonly key: string
  readonly event_id: string
  readonly position: string
  readonly event: object
  readonly error: object
  readonly attempts: number
  readonly ordered: boolean
}

/** Content that says of itself that the server refuses it. */
export const REFUSED = { row: 'refused row', run: 'refused run' } as const

function refuseContent({ rows, runs }: Left): void {
  if (rows.some(({ payload }) => payload === REFUSED.row))
    throw sqlError('54000', 'a row exceeds a limit of the server')
  if (runs.includes(REFUSED.run)) throw sqlError('23514', 'a run record violates a check constraint')
}

function addLetter(store: Store, letter: LeftLetter): void {
  const { kind, owner, event_id: eventId, attempts } = letter
  const error = JSON.stringify(letter.error)
  const known = store.letters.find((one) => one.kind === kind && one.owner === owner && one.eventId === eventId)
  if (known) {
    Object.assign(known, { error, attempts: known.attempts + attempts, status: 'dead', parks: letter.ordered })
  } else {
    store.letters.push({
      id: store.nextId++,
      kind,
      owner,
      key: letter.key,
      eventId,
      position: Number(letter.position),
      event: JSON.stringify(letter.event),
      error,
      attempts,
      status: 'dead',
      parks: letter.ordered,
      streak: false,
    })
  }
  store.witness.onLeft('letter', owner, eventId)
}
