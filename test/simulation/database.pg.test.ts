/** The simulated database means what Postgres means: the same random calls are made to both, and their answers compared. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import {
  buryDelivery,
  freeKey,
  markStreak,
  parkEvents,
  redriveStreak,
  removeParked,
  resolveLetter,
  returnLetter,
  selectMarked,
  selectMarkedOwners,
  selectParked,
  selectParkedKeys,
  writeLetter,
} from '../../src/dead-letters/index.ts'
import {
  type ClaimedRow,
  claimDeliveries,
  completeDeliveries,
  releaseClaims,
  releaseDeliveries,
  retryDeliveries,
  selectHeld,
} from '../../src/delivery/statements.ts'
import { selectAllWaiting, selectWaiting } from '../../src/delivery/waiting-keys-statements.ts'
import { askForNews, dismissWorker, enlistWorker, forgetWorkers } from '../../src/delivery/worker-statements.ts'
import { createDatabase, type Database } from '../../src/postgres/index.ts'
import { beginLease, endGoneLeases, endLease, lookAtLeases } from '../../src/processes/statements.ts'
import { Leftovers } from '../../src/subscriptions/index.ts'
import { type Lease, releaseLease, selectStandings, takeLeases } from '../../src/subscriptions/lease-statements.ts'
import { toLeftJson, writeSave } from '../../src/subscriptions/save-statements.ts'
import { countTry, registerSubscription, saveCheckpoint, saveStatus } from '../../src/subscriptions/statements.ts'
import { eventAt } from '../delivery/support/reacting.ts'
import { connect, testDatabase } from '../support/database.ts'
import { type Answer, statementOf } from './database/statements.ts'
import { Store } from './database/store.ts'
import { Random } from './random.ts'
import { World } from './world.ts'

const ID = 'reader'
const ACTION = 'reader/1'
const NAMES = JSON.stringify([{ kind: 'action', name: ACTION }])
const PROCESSES = ['one', 'two']
const KEYS = ['a', 'b']
const ERROR = { name: 'Error', message: 'failed' }

/** One of the two databases, and what calls have learnt from it. */
interface Side {
  readonly db: Database
  /** The lease of each process, and what it holds. */
  readonly names: Map<string, string>
  readonly leases: Map<string, Lease>
  /** By event id. */
  readonly claims: Map<string, ClaimedRow>
  letterOf(eventId: string): Promise<bigint | undefined>
  mark(eventId: string): Promise<void>
  /** A moment passes, and no lease runs out however busy the machine is. */
  pass(): Promise<void>
  dump(): Promise<unknown>
}

type Call = (side: Side) => Promise<unknown>

test.each([1, 2, 3, 4, 5, 6])('answers and tables are the same after 150 random calls (%i)', async (seed) => {
  const { url } = await testDatabase({ migrated: true })
  const database = createDatabase({ database: url })
  const sides = [await realSide(database, await connect(url)), simulatedSide()]
  const random = new Random(seed)
  try {
    for (let n = 0; n < 150; n++) {
      const [name, call] = draw(random, n)
      const [real, simulated] = [await answerOf(call, sides[0]!), await answerOf(call, sides[1]!)]
      for (const side of sides) await side.pass()
      expect({ n, name, answer: simulated }).toEqual({ n, name, answer: real })
      expect({ n, name, tables: await sides[1]!.dump() }).toEqual({ n, name, tables: await sides[0]!.dump() })
    }
  } finally {
    await database.close()
  }
})

/** A refused call answers with its SQLSTATE. */
async function answerOf(call: Call, side: Side): Promise<unknown> {
  try {
    return await call(side)
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code === undefined) throw error
    return code
  }
}

/** A call with its arguments, the same for both sides. */
function draw(random: Random, n: number): readonly [name: string, call: Call] {
  const process = random.pick(PROCESSES)
  const position = BigInt(random.whole(1, 30))
  const event = eventAt(position)
  const key = random.pick(KEYS)
  const checkpoint = {
    position,
    done: random.chance(0.5) ? '{}' : `{[${position + 5n},${position + 7n}),[${position + 2n},${position + 3n})}`,
    lastEventId: random.chance(0.5) ? event.id : null,
  }
  const number = BigInt(random.whole(1, 12))
  const [force, locked, clean, flag] = [random.chance(0.4), random.chance(0.5), random.chance(0.5), random.chance(0.5)]
  // An earlier lease of the same process, which it need not wait for.
  const former = random.chance(0.3) ? [`${process}-${random.whole(0, n)}`] : []
  const [limit, mostNamed] = [random.whole(1, 4), random.whole(1, 5)]
  const token = BigInt(1_000 + n)
  const held = (write: (side: Side, lease: Lease) => Promise<unknown>): Call => {
    return async (side) => {
      const lease = side.leases.get(process)
      return lease && write(side, lease)
    }
  }
  const named = (write: (side: Side, lease: string) => Promise<unknown>): Call => {
    return async (side) => {
      const lease = side.names.get(process)
      return lease && write(side, lease)
    }
  }
  const claimed = (write: (side: Side, claim: ClaimedRow) => Promise<unknown>): Call => {
    return async (side) => {
      const claim = side.claims.get(event.id) ?? [...side.claims.values()][0]
      return claim && write(side, claim)
    }
  }
  const ofLetter = (write: (side: Side, lease: Lease, letter: bigint) => Promise<unknown>): Call =>
    held(async (side, lease) => {
      const letter = await side.letterOf(event.id)
      return letter && write(side, lease, letter)
    })
  const calls: Readonly<Record<string, Call>> = {
    async beginLease({ db, names }) {
      names.set(process, `${process}-${n}`)
      const info = { process, host: 'here', pid: 1, version: '0', configHash: '0' }
      await beginLease(db, info, { lease: `${process}-${n}`, locked: locked && flag, lockKey: null })
    },
    lookAtLeases: named(async ({ db }, lease) => {
      const found = await lookAtLeases(db, { process, lease, locked: locked && flag, renew: clean })
      return { ...found, lockless: [...found.lockless].sort() }
    }),
    endGoneLeases: ({ db, names }) => endGoneLeases(db, [...names.values()]),
    endLease: named(({ db }, lease) => endLease(db, lease)),
    takeLeases: named(async ({ db, leases }, lease) => {
      const taken = await takeLeases(db, lease, [{ id: ID, generation: 1n }], { force, former })
      for (const one of taken) leases.set(process, one)
      return taken.map(({ server: _, ...one }) => one)
    }),
    selectStandings: named(({ db, leases }, lease) => selectStandings(db, lease, [...leases.values()])),
    releaseLease: held(({ db }, lease) => releaseLease(db, lease, { clean, channel: null })),
    saveCheckpoint: held(({ db }, lease) => saveCheckpoint(db, lease, checkpoint, flag ? number : null)),
    plainSave: held(({ db }, lease) => writeSave(db, lease, { number, checkpoint, left: undefined })),
    save: held(({ db }, lease) => writeSave(db, lease, { number, checkpoint, left: leftOf(n, key, flag) })),
    anotherSave: held(({ db }, lease) =>
      writeSave(db, lease, { number: BigInt(n + 20), checkpoint, left: leftOf(n, key, flag) }),
    ),
    countTry: held(({ db }, lease) => countTry(db, lease, checkpoint, position)),
    saveStatus: held(({ db }, lease) => saveStatus(db, lease, 'active', flag ? 'a reason' : null)),
    writeLetter: held(({ db }, lease) =>
      writeLetter(db, lease, checkpoint, {
        kind: 'subscription',
        owner: ID,
        key,
        event,
        error: ERROR,
        attempts: 2,
        sinceFirstMs: 0,
        parks: flag,
      }),
    ),
    parkEvents: held(({ db }, lease) => parkEvents(db, lease, checkpoint, [{ event, key }])),
    selectParkedKeys: async ({ db }) => (await selectParkedKeys(db, ID)).sort(),
    selectMarked: async ({ db }) =>
      (await selectMarked(db, ID, 50)).map(({ letter: _, event: copy, ...rest }) => ({ ...rest, id: copy.id })),
    selectMarkedOwners: ({ db }) => selectMarkedOwners(db, [ID]),
    mark: ({ mark }) => mark(event.id),
    resolveLetter: ofLetter(({ db }, lease, letter) => resolveLetter(db, lease, letter)),
    returnLetter: ofLetter(({ db }, lease, letter) => returnLetter(db, lease, letter, JSON.stringify(ERROR), 1)),
    selectParked: async ({ db }) => (await selectParked(db, ID, key, 50)).map(({ id }) => id),
    removeParked: held(({ db }, lease) => removeParked(db, lease, position)),
    freeKey: held(({ db }, lease) => freeKey(db, lease, key)),
    markStreak: held(({ db }, lease) => markStreak(db, lease, [event.id])),
    redriveStreak: held(({ db }, lease) => redriveStreak(db, lease)),
    enlistWorker: named(({ db }, worker) => enlistWorker(db, { worker, process, names: NAMES })),
    claimDeliveries: named(async ({ db, claims }, worker) => {
      const shares = JSON.stringify(clean ? { [` ${ACTION}`]: 2 } : {})
      const hanging = JSON.stringify(locked && clean ? [` ${ACTION}`] : [])
      const { rows, nextMs } = await claimDeliveries(db, {
        ...{ worker, token, names: NAMES, limit, suspects: flag, hanging, shares },
        ...{ running: '{}', most: 100, mostNamed, places: 100 },
      })
      const answer = rows.map((row) => ({ event: eventOf(row), attempts: row.attempts, suspect: row.suspect }))
      for (const row of rows) claims.set(eventOf(row), row)
      return { answer, isDue: nextMs === undefined ? undefined : nextMs <= 0 }
    }),
    dismissWorker: named(({ db }, worker) => dismissWorker(db, worker)),
    askForNews: named(async ({ db }, worker) => {
      const { listed, others, gone } = await askForNews(db, { worker, names: flag ? NAMES : null })
      return { listed, others, gone }
    }),
    forgetWorkers: ({ db }) => forgetWorkers(db),
    completeDeliveries: claimed(async ({ db }, claim) => (await completeDeliveries(db, [claim])).size),
    retryDeliveries: claimed(
      async ({ db }, claim) =>
        (await retryDeliveries(db, [{ ...claim, delayMs: flag ? 0 : 3_600_000, error: ERROR, counts: clean }])).size,
    ),
    releaseDeliveries: claimed(({ db }, claim) => releaseDeliveries(db, [claim])),
    releaseClaims: claimed(({ db }, claim) => releaseClaims(db, [claim.token])),
    selectHeld: claimed(async ({ db }, claim) => (await selectHeld(db, [claim])).size),
    buryDelivery: claimed(({ db }, claim) =>
      buryDelivery(db, {
        claim,
        kind: 'action',
        owner: ACTION,
        key: claim.key ?? eventOf(claim),
        eventId: eventOf(claim),
        position,
        event: JSON.stringify({ id: eventOf(claim) }),
        error: JSON.stringify(ERROR),
        attempts: 3,
        freesUniqueKey: false,
      }),
    ),
    selectAllWaiting: async ({ db }) => (await selectAllWaiting(db, 100))?.map(({ key: one }) => one).sort(),
    selectWaiting: async ({ db }) => {
      const lines = KEYS.map((one) => ({ kind: 'action', name: ACTION, owner: ACTION, key: one }) as const)
      return (await selectWaiting(db, lines)).map(({ key: one }) => one).sort()
    },
  }
  const names = Object.keys(calls)
  // Nothing can be written before a lease was taken, nor claimed before there are rows.
  const name =
    n === 0
      ? 'beginLease'
      : n < 3
        ? 'takeLeases'
        : n % 11 === 0
          ? 'enlistWorker'
          : n % 5 === 0
            ? 'anotherSave'
            : n % 7 === 0
              ? 'claimDeliveries'
              : random.pick(names)
  return [name, calls[name]!]
}

/** A row and a letter of two events of its own. */
function leftOf(n: number, key: string, isOrdered: boolean): string {
  const left = new Leftovers()
  const lane = { kind: 'action', name: ACTION, destination: '', tenant: '', priority: 0 }
  const orderKey = isOrdered ? key : null
  const eventId = `left-${n}`
  left.rows.push({ lane, owner: ACTION, key: orderKey, eventId, payload: `{"event":"${eventId}"}`, delayMs: 0 })
  if (n % 3 === 0) {
    const letter = { lane, owner: ACTION, orderKey, key, eventId: `dead-${n}`, position: BigInt(n), error: ERROR }
    left.letters.push({ ...letter, event: '{"id":"x"}', attempts: 1, sinceFirstMs: 0, payload: '{}' })
  }
  return toLeftJson([left], new Map([[BigInt(n), ['an owner']]]))
}

function eventOf({ payload }: Pick<ClaimedRow, 'payload'>): string {
  return (JSON.parse(payload) as { event: string }).event
}

async function realSide(db: Database, sql: pg.Client): Promise<Side> {
  await registerSubscription(db, { id: ID, kind: 'observers', definition: '{}', position: 0n })
  const rows = async (text: string, values: unknown[] = []) => (await sql.query(text, values)).rows
  return {
    db,
    names: new Map(),
    leases: new Map(),
    claims: new Map(),
    async letterOf(eventId) {
      const [found] = await rows(`select id from aftercommit.letters where owner = $1 and event_id = $2`, [ID, eventId])
      return found && BigInt(found.id)
    },
    async mark(eventId) {
      await rows(`update aftercommit.letters set status = 'redriving' where owner = $1 and event_id = $2`, [
        ID,
        eventId,
      ])
    },
    async pass() {
      await rows(`update aftercommit.processes set lease_until = 'infinity' where lease_until > clock_timestamp()`)
    },
    dump: async () => ({
      partition: (
        await rows(`select owner, term::int, clean, deaths, position::int, done::text, last_event_id as last, save::int,
                           settled, trying::int, tries from aftercommit.subscription_partitions`)
      )[0],
      letters: await rows(`select owner, key, event_id as event, attempts, status, parks, streak
                             from aftercommit.letters order by owner, event_id`),
      workers: await rows(
        'select worker, jsonb_array_length(names) as names from aftercommit.delivery_workers order by worker',
      ),
      parked: await rows('select position::int, key from aftercommit.parked order by position'),
      deliveries:
        await rows(`select owner, key, ordered, event_id as event, attempts, token is not null as claimed, worker, alone
                                from aftercommit.deliveries order by event_id`),
    }),
  }
}

function simulatedSide(): Side {
  const nothing = () => {}
  const witness = {
    onTerm: nothing,
    onCheckpoint: nothing,
    onLeft: nothing,
    onDone: nothing,
    onBell: nothing,
    onWord: nothing,
  }
  const store = new Store(new World(new Random(1)), witness, new Set())
  store.addSubscription(ID)
  const query = async (text: string, values: readonly (string | number | boolean | null)[] = []) => {
    const answer = statementOf(text).run(store, values, text) as Answer
    answer.commit?.()
    return answer
  }
  const pool = { schema: 'db', query, transaction: (work: (tx: unknown) => unknown) => work({ schema: 'db', query }) }
  const db = { ...pool, control: pool } as unknown as Database
  const byText = (one: string | null, other: string | null) => ((one ?? '') < (other ?? '') ? -1 : 1)
  const letterOf = (eventId: string) => store.letters.find((one) => one.owner === ID && one.eventId === eventId)
  return {
    db,
    names: new Map(),
    leases: new Map(),
    claims: new Map(),
    letterOf: async (eventId) => {
      const letter = letterOf(eventId)
      return letter && BigInt(letter.id)
    },
    async mark(eventId) {
      const letter = letterOf(eventId)
      if (letter) letter.status = 'redriving'
    },
    async pass() {
      store.world.now++
    },
    async dump() {
      const { owner, term, clean, deaths, position, done, lastEventId, save, settled, trying, tries } =
        store.partitions.get(ID)!
      const text = `{${done.map(({ from, to }) => `[${from},${to})`).join(',')}}`
      return {
        partition: {
          ...{ owner, term, clean, deaths, position, done: text, last: lastEventId, save },
          ...{ settled: JSON.parse(settled), trying, tries },
        },
        letters: [...store.letters]
          .sort((one, other) =>
            one.owner === other.owner ? byText(one.eventId, other.eventId) : byText(one.owner, other.owner),
          )
          .map(({ owner: of, key, eventId: event, attempts, status, parks, streak }) => ({
            ...{ owner: of, key, event, attempts, status, parks, streak },
          })),
        parked: [...store.parked]
          .sort((one, other) => one.position - other.position)
          .map(({ position: at, key }) => ({ position: at, key })),
        workers: [...store.workers.values()]
          .sort((one, other) => byText(one.worker, other.worker))
          .map(({ worker, names }) => ({ worker, names: names.length })),
        deliveries: [...store.deliveries.values()]
          .sort((one, other) => byText(one.eventId, other.eventId))
          .map(({ owner: of, key, ordered, eventId: event, attempts, token, worker, alone }) => ({
            ...{ owner: of, key, ordered, event, attempts, claimed: token !== null, worker, alone },
          })),
      }
    },
  }
}
