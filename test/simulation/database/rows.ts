/** Rows of work and their lanes: sql/delivery/add_deliveries.sql, delivery_lane_numbers.sql and first_in_turn.sql. */
import type { Store } from './store.ts'
import type { DeliveryRow, LaneRow, LetterRow, NameOfWork } from './tables.ts'

/** A row as it is handed to `add_deliveries`. */
export interface AddedRow {
  readonly lane: number
  readonly owner: string
  readonly key?: string | undefined
  readonly ordered?: boolean
  readonly event_id: string
  readonly delay_ms?: number
  readonly attempts?: number
  readonly payload: unknown
  readonly error?: { readonly message?: string }
}

/** The number of a lane, which is made if it is new. */
export function laneOf(store: Store, wanted: Omit<LaneRow, 'lane'>): number {
  const { kind, name, destination, tenant, priority } = wanted
  const known = store.lanes.find(
    (one) =>
      one.kind === kind &&
      one.name === name &&
      one.destination === destination &&
      one.tenant === tenant &&
      one.priority === priority,
  )
  if (known) return known.lane
  const lane = store.lanes.length + 1
  store.lanes.push({ lane, kind, name, destination, tenant, priority })
  return lane
}

/** A row with the next id, not added yet. */
export function makeDelivery(store: Store, lane: number, row: Omit<AddedRow, 'lane'>): DeliveryRow {
  const { owner, key = null, ordered = false, event_id: eventId, delay_ms: delayMs = 0, attempts = 0, payload } = row
  return {
    segment: delayMs > 2_000 || attempts > 0 ? 0 : 1,
    id: store.nextId++,
    lane,
    owner,
    key,
    ordered: ordered && key !== null,
    eventId,
    payload: JSON.stringify(payload),
    createdAt: store.now,
    runAt: store.now + delayMs,
    attempts,
    token: null,
    worker: null,
    alone: false,
    isLocked: false,
    letter: null,
  }
}

export function addDelivery(store: Store, lane: number, row: Omit<AddedRow, 'lane'>): DeliveryRow {
  const made = makeDelivery(store, lane, row)
  store.deliveries.set(made.id, made)
  return made
}

/** A letter, or another death of the same event for the same owner. */
export function putLetter(store: Store, letter: Omit<LetterRow, 'id' | 'status' | 'streak'>): void {
  const at = store.letters.findIndex(
    (one) => one.kind === letter.kind && one.owner === letter.owner && one.eventId === letter.eventId,
  )
  const before = store.letters[at]
  const attempts = letter.attempts + (before?.attempts ?? 0)
  const row: LetterRow = { ...letter, attempts, id: before?.id ?? store.nextId++, status: 'dead', streak: false }
  if (before) store.letters[at] = row
  else store.letters.push(row)
}

/** Due, not claimed, in order; of keys only what is first. */
export function firstInTurn(store: Store, lane: number, most: number): DeliveryRow[] {
  const { kind, name } = store.lanes[lane - 1]!
  const isFirst = (row: DeliveryRow) =>
    !row.ordered ||
    store.isOff('turns of rows') ||
    (!hasEarlierRow(store, { kind, name }, row) && !isBehindLetter(store, kind, row))
  return dueRows(store, lane).filter(isFirst).slice(0, most)
}

export function dueRows(store: Store, lane: number): DeliveryRow[] {
  const due = [...store.deliveries.values()].filter(
    (row) => row.lane === lane && row.token === null && row.runAt <= store.now,
  )
  return due.sort((one, other) => one.runAt - other.runAt || one.id - other.id)
}

function hasEarlierRow(store: Store, { kind, name }: NameOfWork, { id, key }: DeliveryRow): boolean {
  for (const row of store.deliveries.values()) {
    if (!row.ordered || row.key !== key || row.id >= id) continue
    const lane = store.lanes[row.lane - 1]!
    if (lane.kind === kind && lane.name === name) return true
  }
  return false
}

function isBehindLetter(store: Store, kind: string, { owner, key }: DeliveryRow): boolean {
  return store.letters.some(
    (letter) =>
      letter.kind === kind &&
      letter.owner === owner &&
      letter.delivery?.key === key &&
      letter.parks &&
      letter.status === 'dead',
  )
}
