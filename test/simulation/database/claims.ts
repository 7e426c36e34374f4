/** Claims and what becomes of them: src/delivery/statements.ts, waiting-keys-statements.ts, and `buryDelivery` of dead-letters/. */
import { changed, rowsOf, sqlError, valueAs } from './answers.ts'
import { dueRows, firstInTurn, putLetter } from './rows.ts'
import type { Statement } from './statements.ts'
import type { Store } from './store.ts'
import type { DeliveryRow, LaneRow, NameOfWork } from './tables.ts'

export const CLAIMS = {
  claimDeliveries: {
    says: /\.claim_deliveries\(/,
    run(store, [worker, namesText, limitText, suspects, , , token, , hangingText, sharesText, mostNamed]) {
      if (!store.workers.has(worker as string) || !store.lives(worker as string))
        throw sqlError('AC010', 'The lease of this worker ran out.')
      const names = JSON.parse(namesText as string) as NameOfWork[]
      const limit = Number(limitText)
      const claimed: Record<string, unknown>[] = []
      const claim = (row: DeliveryRow, suspect: boolean) => {
        Object.assign(row, { token, worker, alone: suspect })
        claimed.push(toAnswer(row, suspect))
      }
      const suspect = suspects ? firstSuspect(store, names) : undefined
      if (suspect) {
        suspect.attempts = Math.max(suspect.attempts + Number(suspect.alone), 1)
        claim(suspect, true)
      }
      const shares = JSON.parse(sharesText as string) as Record<string, number>
      const hanging = JSON.parse(hangingText as string) as string[]
      const roomOf = ({ name }: LaneRow) => Number(mostNamed) - (shares[shareOf(name)] ?? 0)
      const lanes = lanesOf(store, names).filter(
        (lane) => roomOf(lane) > 0 && !hanging.includes(shareOf(lane.name)) && dueRows(store, lane.lane).length > 0,
      )
      for (const priority of [...new Set(lanes.map((lane) => lane.priority))].sort((a, b) => b - a)) {
        const level = lanes.filter((lane) => lane.priority === priority)
        shuffle(store, level)
        const left = limit - claimed.length
        if (left <= 0) break
        const share = Math.max(1, Math.floor(left / level.length))
        const turns = level.slice(0, left)
        for (const [at, lane] of turns.entries()) {
          const before = turns.slice(0, at).filter(({ name }) => name === lane.name).length
          const granted = Math.max(0, Math.min(share, roomOf(lane) - before * share))
          for (const row of firstInTurn(store, lane.lane, granted)) {
            row.attempts++
            claim(row, false)
          }
        }
      }
      if (claimed.length >= limit) return rowsOf(claimed)
      return rowsOf([...claimed, { id: null, next_ms: nextMs(store, names) }])
    },
  },
  releaseClaims: {
    says: /where token = any \(\(\$1::text\)::bigint\[\]\)$/,
    waits: true,
    run(store, [tokens]) {
      const asked = (tokens as string).slice(1, -1).split(',')
      for (const row of store.deliveries.values()) if (asked.includes(row.token ?? '')) giveBack(row)
      return changed(0)
    },
  },
  selectOldestTransactionMs: {
    says: /clock_timestamp\(\) - xact_start/,
    run: () => valueAs('ms', 0),
  },
  completeDeliveries: {
    says: /^with done_0 as \( delete from/,
    waits: true,
    varies: true,
    run(store, values, text) {
      const groups = [...text.matchAll(/segment = (\d+) and token = (\d+) and id = any \(\(\$(\d+)::/g)]
      const gone: DeliveryRow[] = []
      for (const [, segment, token, nth] of groups) {
        for (const id of (values[Number(nth) - 1] as string).slice(1, -1).split(',')) {
          const row = ours(store, Number(segment), Number(id), token!)
          if (!row) continue
          store.deliveries.delete(row.id)
          gone.push(row)
          store.witness.onDone(row)
        }
      }
      return rowsOf(gone.map(({ id }) => ({ id: String(id), letter: null })))
    },
  },
  retryDeliveries: {
    says: /^with failed as materialized/,
    waits: true,
    run(store, [failures]) {
      const rows: Record<string, unknown>[] = []
      for (const failure of JSON.parse(failures as string) as Failure[]) {
        const row = ours(store, failure.segment, Number(failure.id), failure.token)
        if (!row) continue
        row.segment = 0
        row.runAt = store.now + failure.delay_ms
        row.attempts -= Number(!failure.counts)
        Object.assign(row, { token: null, worker: null, alone: false })
        rows.push({ id: String(row.id) })
      }
      if (rows.length > 0) store.witness.onBell()
      return rowsOf(rows)
    },
  },
  releaseDeliveries: {
    says: /set token = null, worker = null, alone = false, attempts = d\.attempts - 1 from jsonb_to_recordset/,
    waits: true,
    run(store, [claims]) {
      const held = parseClaims(store, claims as string)
      for (const row of held) giveBack(row)
      return changed(held.length)
    },
  },
  selectHeld: {
    says: /^select d\.id::text as id from jsonb_to_recordset/,
    run: (store, [claims]) => rowsOf(parseClaims(store, claims as string).map(({ id }) => ({ id: String(id) }))),
  },
  buryDelivery: {
    says: /select exists \(select from gone\) as buried$/,
    waits: true,
    run(store, [segment, id, token, kind, owner, key, eventId, position, event, error, attempts]) {
      const row = ours(store, Number(segment), Number(id), token as string)
      if (!row) return valueAs('buried', false)
      row.isLocked = true
      const commit = () => {
        store.deliveries.delete(row.id)
        putLetter(store, {
          kind: kind as string,
          owner: owner as string,
          key: key as string,
          eventId: eventId as string,
          position: Number(position),
          event: event as string,
          error: error as string,
          attempts: Number(attempts),
          parks: row.ordered,
          delivery: row,
        })
      }
      const rollBack = () => {
        row.isLocked = false
      }
      return { ...valueAs('buried', true), commit, rollBack }
    },
  },
  selectLane: {
    says: /^select lane, kind, name, destination, tenant, priority from/,
    run: (store, [lane]) => rowsOf([{ ...store.lanes[Number(lane) - 1]! }]),
  },
  surplusRoom: {
    says: /\.surplus_room\(/,
    run(store, [worker, lanesText, places]) {
      const lanes = JSON.parse(lanesText as string) as Omit<LaneRow, 'lane'>[]
      const names = new Map(lanes.map(({ kind, name }) => [`${kind} ${name}`, { kind, name }]))
      const rows = [...names.values()].map(({ kind, name }) => {
        const others = [...store.workers.values()].filter(
          (one) =>
            one.worker !== worker &&
            store.lives(one.worker) &&
            one.names.some((named) => named.kind === kind && named.name === name),
        )
        const unclaimed = lanesOf(store, [{ kind, name }]).flatMap(({ lane }) => dueRows(store, lane))
        return { kind, name, room: others.length * Number(places) - unclaimed.length }
      })
      return rowsOf(rows)
    },
  },
  selectWaiting: {
    says: /^with asked as materialized/,
    run(store, [text]) {
      if (store.isOff('waiting keys')) return rowsOf([])
      const lines = JSON.parse(text as string) as (NameOfWork & { owner: string; key: string })[]
      const held = lines.filter(({ kind, name, owner, key }) => {
        const lanes = lanesOf(store, [{ kind, name }]).map(({ lane }) => lane)
        const rows = [...store.deliveries.values()]
        return (
          rows.some((row) => row.ordered && row.key === key && lanes.includes(row.lane)) ||
          store.letters.some(
            (one) => one.kind === kind && one.owner === owner && one.key === key && one.parks && one.status === 'dead',
          )
        )
      })
      return rowsOf(held.map(({ name, key }) => ({ name, key })))
    },
  },
  selectAllWaiting: {
    says: /^select l\.name, h\.key from/,
    run(store, [most]) {
      if (store.isOff('waiting keys')) return rowsOf([])
      const rows = [...store.deliveries.values()].filter(({ ordered }) => ordered)
      const letters = store.letters.filter(({ parks, status, delivery }) => parks && status === 'dead' && delivery)
      const held = [...rows, ...letters.map(({ delivery, key }) => ({ lane: delivery!.lane, key }))]
      return rowsOf(held.slice(0, Number(most)).map(({ lane, key }) => ({ name: store.lanes[lane - 1]!.name, key })))
    },
  },
  rotateSegments: {
    says: /\.rotate_deliveries\(/,
    run: () => rowsOf([]),
  },
} satisfies Record<string, Statement>

interface Failure {
  readonly segment: number
  readonly id: string
  readonly token: string
  readonly delay_ms: number
  readonly counts: boolean
}

/** The row, if the claim that is named has it. */
function ours(store: Store, segment: number, id: number, token: string): DeliveryRow | undefined {
  const row = store.deliveries.get(id)
  if (row === undefined || row.segment !== segment) return undefined
  return row.token === token || store.isOff('token') ? row : undefined
}

function parseClaims(store: Store, text: string): DeliveryRow[] {
  const claims = JSON.parse(text) as { segment: number; id: string; token: string }[]
  return claims
    .map(({ segment, id, token }) => ours(store, segment, Number(id), token))
    .filter((row) => row !== undefined)
}

function giveBack(row: DeliveryRow): void {
  Object.assign(row, { token: null, worker: null, alone: false, attempts: row.attempts - 1 })
}

function lanesOf(store: Store, names: readonly NameOfWork[]): LaneRow[] {
  return store.lanes.filter((lane) => names.some(({ kind, name }) => kind === lane.kind && name === lane.name))
}

/** The share of the places that a name without a destination has: destinations are not simulated. */
function shareOf(name: string): string {
  return ` ${name}`
}

/** A row that a worker had claimed which is gone. */
function firstSuspect(store: Store, names: readonly NameOfWork[]): DeliveryRow | undefined {
  const lanes = new Set(lanesOf(store, names).map(({ lane }) => lane))
  if ([...store.workers.keys()].every((worker) => store.lives(worker))) return undefined
  return [...store.deliveries.values()]
    .filter((row) => lanes.has(row.lane) && row.token !== null && row.runAt <= store.now)
    .filter((row) => !row.isLocked && !store.lives(row.worker))
    .sort((one, other) => one.runAt - other.runAt || one.id - other.id)[0]
}

function nextMs(store: Store, names: readonly NameOfWork[]): number | null {
  const lanes = new Set(lanesOf(store, names).map(({ lane }) => lane))
  const waiting = [...store.deliveries.values()].filter(
    (row) => row.token === null && (lanes.has(row.lane) || (row.segment === 0 && row.runAt > store.now)),
  )
  if (waiting.length === 0) return null
  return Math.max(0, Math.min(...waiting.map(({ runAt }) => runAt)) - store.now)
}

function toAnswer(row: DeliveryRow, suspect: boolean): Record<string, unknown> {
  const { segment, id, lane, owner, key, payload, attempts, createdAt, token } = row
  const fields = { segment, id: String(id), lane, owner, key, payload, attempts, created_ms: createdAt, token }
  return { ...fields, suspect, letter: null, next_ms: null }
}

function shuffle(store: Store, lanes: LaneRow[]): void {
  for (let at = lanes.length - 1; at > 0; at--) {
    const other = store.world.random.whole(0, at)
    ;[lanes[at], lanes[other]] = [lanes[other]!, lanes[at]!]
  }
}
