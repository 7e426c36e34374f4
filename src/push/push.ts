/** `ac.push`: which browsers of which user may be pushed to. Sending is what push actions of observers do. */
import { AftercommitError } from '../errors.ts'
import {
  assertSameDatabase,
  type CallerTransaction,
  type Database,
  type Queryable,
  toTransaction,
} from '../postgres/index.ts'
import {
  deleteOldProgress,
  deleteSubscription,
  deleteSurplus,
  selectDevices,
  upsertSubscription,
} from './statements.ts'
import { checkSubscription, hashOf, type PushSubscriptionInput } from './subscription.ts'

/** A browser that may be pushed to. Its keys are not told. */
export interface PushDevice {
  readonly endpoint: string
  readonly createdAt: Date
  /** When the browser last registered. */
  readonly seenAt: Date
}

export interface Push {
  /**
   * Keeps a browser's subscription, in a transaction of yours or by itself. True when it is new; one that is known is
   * kept up to date, and belongs to this user from now on. A user has at most 50: those not seen for longest go.
   * Throws BAD_PUSH_SUBSCRIPTION for anything that is none, so what a browser sent can be handed on as it is.
   */
  register(
    user: string,
    subscription: PushSubscriptionInput,
    options?: { tx?: CallerTransaction | undefined },
  ): Promise<boolean>
  /** False when it was not known. */
  unregister(endpoint: string, options?: { tx?: CallerTransaction | undefined }): Promise<boolean>
  /** Those seen last first. */
  list(user: string): Promise<PushDevice[]>
}

export interface PushParts {
  readonly database: Database
  /** Why an address may not be called, to follow "because"; undefined when it may. */
  readonly refusalOf: (endpoint: string) => Promise<string | undefined>
}

export interface PushPart {
  readonly push: Push
  prune(): Promise<void>
}

/** Whoever registers could otherwise make us call ten thousand addresses with every message. */
const MOST_DEVICES = 50
/** Longer than anything is tried again; a dead letter that is redriven after it may reach a device twice. */
const PROGRESS_DAYS = 30

export function createPush({ database, refusalOf }: PushParts): PushPart {
  async function sessionOf(tx: unknown): Promise<Queryable> {
    if (tx === undefined) return database
    const db = toTransaction(tx, database.schema, 'leave `tx` out to commit at once')
    await assertSameDatabase(database, db)
    return db
  }

  return {
    push: {
      async register(user, subscription, { tx } = {}) {
        checkUser(user)
        const checked = await checkSubscription(subscription, refusalOf)
        const db = await sessionOf(tx)
        const isNew = await upsertSubscription(db, user, checked)
        // Also when it is known: it may have been somebody else's.
        await deleteSurplus(db, user, MOST_DEVICES)
        return isNew
      },
      async unregister(endpoint, { tx } = {}) {
        return deleteSubscription(await sessionOf(tx), hashOf(String(endpoint)))
      },
      async list(user) {
        checkUser(user)
        const rows = await selectDevices(database, user)
        return rows.map(({ endpoint, created, seen }) => ({
          endpoint,
          createdAt: new Date(Number(created)),
          seenAt: new Date(Number(seen)),
        }))
      },
    },
    prune: () => deleteOldProgress(database, PROGRESS_DAYS),
  }
}

function checkUser(user: unknown): void {
  if (typeof user === 'string' && user !== '' && user.length <= 255 && !user.includes('\u0000')) return
  throw new AftercommitError(
    'BAD_OPTION',
    'The user of a push subscription must be text of 1 to 255 characters, so nothing was done. Give your id of the user.',
  )
}
