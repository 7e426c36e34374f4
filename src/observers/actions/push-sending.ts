/**
 * One message to all browsers of a user. What becomes of a browser, failures first:
 *
 * - its address may not be called, or its service refuses the message (413, 401 …): it stays refused
 * - no answer, 408, 425, 429, 5xx: tried again, and only those that have not got the message yet
 * - 404 and 410: the browser is gone, and so is its subscription
 * - 2xx: it has the message
 *
 * Which browsers have it is written down only when the message is not done with all of them, and forgotten when it is.
 */
import { deleteGone, deleteProgress, insertProgress, type Recipient, selectRecipients } from '../../push/index.ts'
import type { ActionContext, PushProvider } from '../action.ts'
import { createGate } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { createPushService, type PushMessage, type PushOutcome } from './push-service.ts'

export interface PushSending {
  /** Says to how many it went. Throws OB010, or the reason of the signal. */
  send(message: AddressedMessage, signal: AbortSignal): Promise<string>
}

export interface AddressedMessage extends PushMessage {
  readonly user: string
}

/** Browsers of one user that are called at once. */
const AT_ONCE = 10
const STATEMENT_TIMEOUT_MS = 30_000
/** Anybody may register an address that asks for a day, and messages to everybody else would wait as well. */
const MOST_RETRY_AFTER_MS = 60_000

interface Told {
  readonly recipient: Recipient
  readonly outcome: PushOutcome
}

export function createPushSending(provider: PushProvider, context: ActionContext): PushSending {
  const { database, logger } = context
  const service = createPushService(provider, context)

  async function tell(recipients: readonly Recipient[], message: PushMessage, signal: AbortSignal): Promise<Told[]> {
    const gate = createGate(AT_ONCE)
    return Promise.all(
      recipients.map(async (recipient) => {
        const leave = await gate.enter()
        try {
          return { recipient, outcome: await service.post(recipient, message, signal) }
        } finally {
          leave()
        }
      }),
    )
  }

  /** No signal: what has happened is written down even when the time is over. */
  const write: typeof database.transaction = (fn) =>
    database.transaction(fn, { isolation: 'read committed', statementTimeoutMs: STATEMENT_TIMEOUT_MS })

  /** A failure of it costs a repetition, and must not hide what is to be told of the message. */
  async function keepProgress(id: string, told: readonly Told[]): Promise<void> {
    const has = hashesOf(told, 'sent')
    const gone = hashesOf(told, 'gone')
    if (has.length + gone.length === 0) return
    try {
      await write(async (tx) => {
        if (has.length > 0) await insertProgress(tx, id, has)
        if (gone.length > 0) await deleteGone(tx, gone)
      })
    } catch (error) {
      logger.warn({ err: error }, 'it was not written down which devices have a push message; they may get it again')
    }
  }

  async function forget(id: string, told: readonly Told[], hasProgress: boolean): Promise<void> {
    const gone = hashesOf(told, 'gone')
    if (gone.length === 0 && !hasProgress) return
    try {
      await write(async (tx) => {
        if (gone.length > 0) await deleteGone(tx, gone)
        if (hasProgress) await deleteProgress(tx, id)
      })
    } catch (error) {
      // Everybody has the message: another attempt would send it twice.
      logger.warn({ err: error }, 'push subscriptions that are gone were not removed; they are with the next message')
    }
  }

  return {
    async send({ user, ...message }, signal) {
      const recipients = await database
        .transaction((tx) => selectRecipients(tx, user, message.id), {
          readOnly: true,
          statementTimeoutMs: STATEMENT_TIMEOUT_MS,
          signal,
        })
        .catch((error) => {
          throw signal.aborted ? error : unread(error)
        })
      const earlier = recipients.filter(({ done }) => done).length
      const told = await tell(
        recipients.filter(({ done }) => !done),
        message,
        signal,
      )
      const failed = told.filter(({ outcome: { kind } }) => kind !== 'sent' && kind !== 'gone')
      if (failed.length > 0) {
        await keepProgress(message.id, told)
        signal.throwIfAborted()
        throw notAll(failed, recipients.length)
      }
      await forget(message.id, told, earlier > 0)
      return summary(earlier + hashesOf(told, 'sent').length, hashesOf(told, 'gone').length)
    },
  }
}

function hashesOf(told: readonly Told[], kind: PushOutcome['kind']): string[] {
  return told.filter(({ outcome }) => outcome.kind === kind).map(({ recipient }) => recipient.hash)
}

/** It is tried again as long as that can help one of them. */
function notAll(failed: readonly Told[], all: number): ObserverError {
  const outcomes = failed.map(({ outcome }) => outcome)
  const later = outcomes.filter((outcome) => outcome.kind === 'later')
  const transient = later.length > 0
  const [first] = transient ? later : outcomes
  const reasons = [...new Set(outcomes.flatMap((outcome) => ('said' in outcome ? [outcome.said] : [])))].join('; ')
  const waits = later.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  const advice = transient
    ? 'Those that have not got it are tried again as configured.'
    : 'It is not tried again. Correct what they object to, or unregister them, then redrive the dead letter.'
  return new ObserverError(
    'OB010',
    `The push message did not reach ${failed.length} of ${all} devices (${reasons}). ${advice}`,
    {
      transient,
      // A browser's own push service: what it does must not keep the messages of other users waiting.
      single: true,
      ...(first !== undefined && 'detail' in first && { status: first.status, detail: first.detail }),
      ...(waits.length > 0 && { retryAfterMs: Math.min(MOST_RETRY_AFTER_MS, Math.max(...waits)) }),
    },
  )
}

function summary(sent: number, gone: number): string {
  const away = gone === 0 ? '' : `; ${gone} gone and removed`
  if (sent > 0) return `sent to ${sent} ${sent === 1 ? 'device' : 'devices'}${away}`
  return gone === 0 ? 'the user has no devices; nothing was sent' : `the user has no devices any more${away}`
}

function unread(cause: unknown): ObserverError {
  return new ObserverError(
    'OB010',
    'The push message was not sent: the devices of the user could not be read. It is tried again as configured.',
    { transient: true, cause },
  )
}
