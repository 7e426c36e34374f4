/** What a program or an operator holds of a subscription, wherever it runs. */
import { AftercommitError } from '../errors.ts'
import { patternsToSql } from '../events/index.ts'
import { findPosition, type StartPoint, settledPosition } from '../log/index.ts'
import { type Database, recordAudit } from '../postgres/index.ts'
import {
  countBetween,
  hasOwner,
  removeSubscription,
  type SubscriptionState,
  seekTo,
  selectStates,
  setPaused,
} from './handle-statements.ts'

export interface OperatorAction {
  readonly who?: string | undefined
  readonly reason?: string | undefined
}

export interface SeekPreview {
  readonly from: bigint
  readonly to: bigint
  /** Matching events that will be handled again (going back) or never (going forward). */
  readonly events: number
  readonly direction: 'back' | 'forward' | 'nowhere'
}

export interface SubscriptionHandle {
  readonly id: string
  status(): Promise<SubscriptionState>
  /** Resolves when no new call starts anywhere. */
  pause(action?: OperatorAction): Promise<void>
  resume(action?: OperatorAction): Promise<void>
  previewSeek(to: StartPoint): Promise<SeekPreview>
  /** Moves the checkpoint; dead letters stay. */
  seek(to: StartPoint, action?: OperatorAction): Promise<SeekPreview>
  /** Skips everything that is final now. */
  fastForward(action?: OperatorAction): Promise<SeekPreview>
  /** Forgets the subscription with its checkpoint and letters. */
  remove(action?: OperatorAction): Promise<void>
  /** Ends it in this process; others may take it over. */
  stop(): Promise<void>
}

export interface HandleParts {
  readonly database: Database
  /** Tells every process that something changed. */
  readonly nudge: () => Promise<void>
  readonly stopHere: (id: string) => Promise<void>
}

export function createHandle(id: string, { database, nudge, stopHere }: HandleParts): SubscriptionHandle {
  async function state(): Promise<SubscriptionState> {
    const [found] = await selectStates(database, id)
    if (!found) throw new AftercommitError('UNKNOWN_SUBSCRIPTION', `There is no subscription "${id}" in the database.`)
    return found
  }

  /** The change and its record are one transaction. */
  async function change(
    what: string,
    { who = 'unknown', reason }: OperatorAction,
    work: (db: Database) => Promise<unknown>,
    details?: object,
  ) {
    const before = await state()
    await database.transaction(async (tx) => {
      await work(tx as unknown as Database)
      await recordAudit(tx, {
        who,
        what: `subscription.${what}`,
        target: id,
        before: { position: before.position, status: before.status },
        ...(details ? { after: details } : {}),
        ...(reason === undefined ? {} : { reason }),
      })
    }, READ_COMMITTED)
    await nudge()
  }

  async function preview(to: StartPoint): Promise<SeekPreview> {
    const { position, on, tenant } = await state()
    const head = await settledPosition(database)
    const target = await findPosition(database, to, head)
    if (target > head) {
      throw new AftercommitError(
        'BAD_OPTION',
        `Position ${target} is beyond the head of the log, which is final up to ${head}, so "${id}" was not moved: events that come later would be skipped.`,
      )
    }
    const [low, high] = target < position ? [target, position] : [position, target]
    const type = on.includes('*') || on.includes('**') ? null : patternsToSql(on)
    const events = await countBetween(database, low, high, { type, tenant })
    return {
      from: position,
      to: target,
      events,
      direction: target < position ? 'back' : target > position ? 'forward' : 'nowhere',
    }
  }

  async function seek(to: StartPoint, action: OperatorAction, what: string): Promise<SeekPreview> {
    const seen = await preview(to)
    await change(what, action, (db) => seekTo(db, id, seen.to), { position: seen.to, events: seen.events })
    return seen
  }

  return {
    id,
    status: state,
    async pause(action = {}) {
      await change('pause', action, (db) => setPaused(db, id, true))
      const deadline = database.clock.monotonic() + 20_000
      while ((await hasOwner(database, id)) && database.clock.monotonic() < deadline) await database.clock.sleep(25)
    },
    resume: (action = {}) => change('resume', action, (db) => setPaused(db, id, false)),
    previewSeek: preview,
    seek: (to, action = {}) => seek(to, action, 'seek'),
    fastForward: (action = {}) => seek('head', action, 'fast-forward'),
    async remove(action = {}) {
      await stopHere(id)
      await change('remove', action, (db) => removeSubscription(db, id))
    },
    stop: () => stopHere(id),
  }
}

const READ_COMMITTED = { isolation: 'read committed' } as const
