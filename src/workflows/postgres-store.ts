/**
 * Workflows kept in Postgres. A step takes one statement, shared by all that come together; see step-batches. Where that
 * cannot be, it takes a transaction of two round trips: BEGIN with the lock and the state, then everything that follows with
 * COMMIT. What can happen to that, failures first:
 *
 *   the connection dies   before COMMIT nothing happened; during it nobody can know, which `OutcomeUnknownError` says
 *   deadlock, 40001       the whole step is made again: it is decided anew, on what is stored then
 *   the unique key is taken   the answer says by whom, and nothing was written
 *   nothing to write      the transaction ends without a trace
 */

import { resolveReported } from '../dead-letters/index.ts'
import type { Claiming } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import type { Log } from '../log/index.ts'
import {
  assertSameDatabase,
  type Database,
  isTransaction,
  OutcomeUnknownError,
  schemaTooNew,
  sqlstateOf,
  type Transaction,
  toTransaction,
  withRetry,
} from '../postgres/index.ts'
import { selectInstances } from './inspect-statements.ts'
import { createLaneBook } from './lane-numbers.ts'
import { selectStanding } from './operate-statements.ts'
import {
  type CommitRequest,
  type Committed,
  commitStatement,
  commitStep,
  loadInstance,
  loadStatement,
  toCommitted,
  toFoundOne,
} from './statements.ts'
import { createStepBatches, type Decide } from './step-batches.ts'
import type { Found, InstanceRef, StepRequest, StepWrite, WorkflowStore, Written } from './store.ts'
import { NOTHING } from './to-write.ts'

export interface PostgresStoreOptions {
  readonly database: Database
  /** Asked when it is needed: the log is built later. */
  readonly log: () => Pick<Log, 'stream'>
  /** Whether effects of this workflow go with the end of its instance. */
  readonly endsEffects: (type: string) => boolean
  /** Effects or timers were written and committed, for whoever does them. */
  readonly onWork: () => void
  /** Effects of a step are begun here at once, where there is room: to claim them would take another commit. */
  readonly claiming: Claiming
  /** The schema refused a step: a newer version has migrated it. */
  readonly onSchemaTooNew: (() => void) | undefined
}

export function createPostgresStore({
  database,
  log,
  endsEffects,
  onWork,
  claiming,
  onSchemaTooNew,
}: PostgresStoreOptions): WorkflowStore {
  const lanes = createLaneBook(database.control)

  /** Everything about a commit but the transaction. `own`: it is ours, so what follows from it may begin with its end. */
  async function prepare({ instance, delivery }: StepRequest, found: Found, write: StepWrite, own: boolean) {
    const numbers = lanes.numbersFor(instance.type, write)
    const { effects } = write
    const isPlain = effects.length > 0 && effects.every(({ ordered, destination }) => !ordered && destination === '')
    return {
      instance,
      found,
      write,
      lanes: numbers instanceof Promise ? await numbers : numbers,
      done: delivery?.claim,
      strict: delivery !== undefined,
      endsEffects: endsEffects(instance.type),
      claim:
        own && isPlain
          ? claiming.reserve(
              'effect',
              effects.map(({ name }) => name),
            )
          : undefined,
    }
  }

  async function ownStep(request: StepRequest, decide: Decide): Promise<Written | undefined> {
    const { delivery } = request
    let prepared: CommitRequest | undefined
    const toWrite = async (row: { answer: string }) => {
      const found = toFoundOne(row)
      const write = decide(found)
      if (write === undefined && delivery === undefined) return undefined
      prepared = await prepare(request, found, write ?? NOTHING, true)
      return commitStatement(database, prepared)
    }
    try {
      const load = loadStatement(database, { ...request, lock: true, own: true })
      const row = await database.twoTrips<{ answer: string }, { answer: string }>(load, toWrite)
      if (row === undefined) return undefined
      const committed = toCommitted(row)
      onCommitted(request, prepared!, committed)
      return committed
    } catch (error) {
      if (prepared) onFailed(prepared, error instanceof OutcomeUnknownError)
      if (sqlstateOf(error) === KEY_TAKEN) return { takenBy: detailOf(error) }
      throw error
    }
  }

  function onCommitted({ delivery }: StepRequest, prepared: CommitRequest, committed: Committed): void {
    delivery?.settled()
    beginWork(prepared, committed)
  }

  /** `isUnknown`: whether it was committed cannot be known. If not, it was not. */
  function onFailed({ claim }: CommitRequest, isUnknown: boolean): void {
    if (!claim) return
    if (isUnknown) claiming.doubt(claim.token)
    else claiming.cancel(claim.token)
  }

  function beginWork(
    { write, claim, lanes: { effects }, instance, found }: CommitRequest,
    { claimed }: Committed,
  ): void {
    if (isSoon(write, found.now, claimed !== undefined)) onWork()
    if (!claim) return
    if (!claimed) {
      claiming.cancel(claim.token)
      return
    }
    const rows = claimed.map((place, n) => ({
      ...place,
      token: claim.token,
      lane: effects[n]!,
      owner: instance.type,
      key: instance.id,
      payload: write.effects[n]!.payload,
      attempts: 1,
      createdMs: found.now.getTime(),
      suspect: false,
      letter: null,
      fresh: true,
    }))
    // A turn later: by then the state is remembered, and what an effect returns finds it without reading history.
    setImmediate(() => {
      claiming.begin(claim.worker, claim.token, rows).catch(() => claiming.doubt(claim.token))
    })
  }

  async function joinedStep(request: StepRequest, decide: Decide): Promise<Written | undefined> {
    const db = toTransaction(request.tx, database.schema, 'leave `tx` out to commit at once')
    await assertSameDatabase(database, db)
    const found = await loadInstance(db, { ...request, lock: true })
    const write = decide(found)
    if (write === undefined) return undefined
    const written = await commitStep(db, await prepare(request, found, write, false))
    if (!isSoon(write, found.now, false)) return written
    if (isTransaction(db)) db.onCommit(onWork)
    else onWork()
    return written
  }

  const batches = createStepBatches({
    database,
    prepare: (request, found, write) => prepare(request, found, write, true),
    alone: (request, decide) => withRetry(() => ownStep(request, decide), { clock: database.clock }),
    onCommitted,
    onFailed,
    takeAlong: claiming.takeAlong,
  })

  return {
    async step(request, decide) {
      try {
        return await (request.tx === undefined ? batches.step(request, decide) : joinedStep(request, decide))
      } catch (error) {
        if (sqlstateOf(error) === SCHEMA_TOO_NEW) onSchemaTooNew?.()
        throw explainStepError(error, request.instance)
      }
    },
    async load(instance, { snapshotVersion, upTo }) {
      const request = { instance, known: () => undefined, snapshotVersion, inputId: undefined, lock: false, upTo }
      const found = await loadInstance(database, request)
      return found.version === 0 ? undefined : found
    },
    history: (instance, { from, to, limit }) => log().stream(instance, { fromVersion: from, toVersion: to, limit }),
    standing: (instance, generation) => selectStanding(database, instance, generation),
    resolveReported: (tx: Transaction, letter) => resolveReported(tx, letter),
    list: (filter) => selectInstances(database, filter),
  }
}

/** Raised where the transaction must not go on without the step; its detail is the instance that has the key. */
const KEY_TAKEN = 'AC013'

const SCHEMA_TOO_NEW = 'AC015'

function detailOf(error: unknown): string {
  return String((error as { detail?: unknown } | null)?.detail ?? '')
}

/** Whether somebody must be woken. What is due later is found in time: workers look twice a minute by themselves. */
function isSoon({ effects, timers }: StepWrite, now: Date, areClaimed: boolean): boolean {
  return (effects.length > 0 && !areClaimed) || timers.some(({ dueMs }) => dueMs - now.getTime() < SOON_MS)
}

const SOON_MS = 60_000

function explainStepError(error: unknown, { type }: InstanceRef): unknown {
  switch (sqlstateOf(error)) {
    case 'AC011':
      return new AftercommitError(
        'BAD_DEFINITION',
        `"${type}" is declared as a stream, so no workflow of that type was begun: both would number the same events. ` +
          'Rename the workflow, or the stream.',
        { cause: error },
      )
    case 'AC014':
      return new AftercommitError(
        'CLAIM_LOST',
        `What brought an input to workflow "${type}" was cancelled, or somebody else has it, so nothing was written.`,
        { cause: error },
      )
    case SCHEMA_TOO_NEW:
      return schemaTooNew('written', error)
    case '42883':
      return new AftercommitError(
        'SCHEMA_TOO_OLD',
        'Workflows are not installed in this database, so nothing was written. Run: aftercommit migrate',
        { cause: error },
      )
  }
  return error
}
