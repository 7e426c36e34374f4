/** `ac.receipt(id)`: reads a receipt, and waits until nothing of it is open. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Clock, type Duration, toMs } from '../runtime/index.ts'
import { type ReceiptParts, readReceipt } from './read-receipt.ts'
import type { Receipt } from './receipt.ts'
import { type Mark, readStrips } from './strips.ts'

export interface SettleOptions {
  /** Default: '30s'. */
  readonly timeout?: Duration | undefined
  readonly signal?: AbortSignal | undefined
}

/** How an event and everything it caused ended. */
export interface Settlement {
  readonly settled: boolean
  /** The event first, then what it caused and is not settled. Empty but for the event when all is settled. */
  readonly open: readonly Receipt[]
  /** How many events were looked at, the event included. */
  readonly events: number
}

export interface ReceiptHandle extends Receipt {
  /**
   * Waits until nothing is open that follows the event or an event it caused, down to 32 causes and 1,000 events, or until
   * the time is up, and answers what is open then.
   */
  settled(options?: SettleOptions): Promise<Settlement>
}

export interface Receipts {
  (eventId: string): Promise<ReceiptHandle>
  /** One mark per reaction, for a list of events; by event id. */
  strips(events: readonly AnyEvent[]): Promise<Map<string, Mark[]>>
}

const DEEPEST = 32
const LOOK_EVERY_MS = 100
const LOOK_AT_LEAST_MS = 1_000

export function createReceipts(parts: ReceiptParts & { readonly clock: Clock }): Receipts {
  const receipt = async (eventId: string): Promise<ReceiptHandle> => {
    if (typeof eventId !== 'string' || eventId === '') {
      throw new AftercommitError('BAD_OPTION', 'ac.receipt() needs the id of an event as text.')
    }
    const found = await readReceipt(eventId, parts)
    return { ...found, settled: (options = {}) => settle(eventId, parts, options) }
  }
  return Object.assign(receipt, { strips: (events: readonly AnyEvent[]) => readStrips(events, parts) })
}

async function settle(
  eventId: string,
  parts: ReceiptParts & { readonly clock: Clock },
  { timeout = '30s', signal }: SettleOptions,
): Promise<Settlement> {
  const { clock } = parts
  const deadline = clock.monotonic() + toMs(timeout, 'timeout')
  let waitMs = LOOK_EVERY_MS
  for (;;) {
    signal?.throwIfAborted()
    const found = await lookAtAll(eventId, parts)
    const leftMs = deadline - clock.monotonic()
    if (found.settled || leftMs <= 0) return found
    await clock.sleep(Math.min(waitMs, leftMs), signal)
    waitMs = Math.min(waitMs * 1.5, LOOK_AT_LEAST_MS)
  }
}

async function lookAtAll(eventId: string, parts: ReceiptParts): Promise<Settlement> {
  const root = await readReceipt(eventId, parts)
  const open: Receipt[] = []
  let events = 1
  for (const { id, depth } of root.caused) {
    if (depth > DEEPEST) continue
    events++
    const receipt = await readReceipt(id, parts)
    if (!receipt.isSettled) open.push(receipt)
  }
  const settled = root.isSettled && open.length === 0
  return { settled, open: settled ? [] : [root, ...open], events }
}
