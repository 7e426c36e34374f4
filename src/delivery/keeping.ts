/** Rows for what cannot end now: not begun, to be tried again, or under way. */
import { stringifyJson } from '../events/index.ts'
import { classify } from '../postgres/index.ts'
import { reconnectDelay } from '../runtime/index.ts'
import type { HeldKeys } from './held-keys.ts'
import type { HotCall } from './hot-call.ts'
import type { Lane } from './lanes.ts'
import type { Reaction, ReactionParts } from './reactions.ts'
import { Run } from './run.ts'
import { createSpiller } from './spiller.ts'
import type { AddedRow } from './statements.ts'
import { newToken } from './token.ts'

export interface Keeping {
  /** What must be known or written before an event of a key may be passed. */
  persistently<T>(reaction: Reaction, signal: () => AbortSignal, attempt: () => T | Promise<T>): Promise<T>
  /** A row that waits. The signal is that of the event's subscription. */
  add(reaction: Reaction, words: Pick<AddedRow, 'delayMs' | 'tried'>, signal: () => AbortSignal): Promise<void>
  /** A row for a call that has ended, as if this worker had claimed it. */
  claim(reaction: Reaction, call: HotCall, signal: () => AbortSignal): Promise<Run>
  /** The same for one that is under way. Undefined when there was none before the call ended. */
  claimSlow(reaction: Reaction, call: HotCall, ended: AbortSignal): Promise<Run | undefined>
}

/** A migration under way may refuse for a moment what is right. */
const MOST_REFUSALS = 6

export function createKeeping(parts: ReactionParts, held: HeldKeys): Keeping {
  const { clock, lanes, lease, outcomes } = parts
  const { spill } = createSpiller(parts.db)

  async function toRow(reaction: Reaction, words: Pick<AddedRow, 'delayMs' | 'tried'>) {
    const { work, eventId, owner, destination, tenant, key, priority } = reaction
    // What goes in order goes neither by tenant nor by priority.
    const own = key === null ? { tenant, priority } : { tenant: '', priority: 0 }
    const lane: Omit<Lane, 'lane'> = { kind: work.kind, name: work.name, destination, ...own }
    const number = await lanes.numberOf(lane)
    const payload = stringifyJson(reaction.payload(), {
      maxBytes: Number.MAX_SAFE_INTEGER,
      maxDepth: 1_000,
      name: 'payload',
    })
    const row: AddedRow = {
      ...{ lane: number, owner, key, ordered: key !== null, uniqueKey: null, eventId, payload, runAt: null },
      ...words,
    }
    return { row, lane: { lane: number, ...lane } }
  }

  async function write(reaction: Reaction, words: Pick<AddedRow, 'delayMs' | 'tried'>) {
    const { row, lane } = await toRow(reaction, words)
    const written = reaction.key === null ? undefined : held.hold(reaction.work.name, reaction.key)
    const added = await spill(row).finally(written)
    return { row, lane, added }
  }

  /**
   * What has an order is asked until there is an answer, or until somebody else reads the event: a refusal would let the
   * later events of its key overtake it. What no repetition seems to mend, and whatever else is refused, comes back with
   * its event.
   */
  async function persistently<T>(
    { key }: Reaction,
    signal: () => AbortSignal,
    attempt: () => T | Promise<T>,
  ): Promise<T> {
    for (let n = 1; ; n++) {
      try {
        return await attempt()
      } catch (error) {
        const isHopeless = n >= MOST_REFUSALS && classify(error) === 'permanent'
        if (key === null || signal().aborted || isHopeless) throw error
        await clock.sleep(reconnectDelay(n), signal())
      }
    }
  }

  /**
   * Whatever the database says, nobody else may begin what is under way. So it is asked again while the call goes on, and
   * what may have been written without an answer is ours until the call has ended, and given back then.
   */
  async function claimSlow(reaction: Reaction, call: HotCall, ended: AbortSignal): Promise<Run | undefined> {
    const { kind, name } = reaction.work
    const doubted: bigint[] = []
    const doubt = (token: bigint) => void (ended.aborted ? parts.onDoubt(token) : doubted.push(token))
    const tell = () => {
      for (const token of doubted) parts.onDoubt(token)
    }
    ended.addEventListener('abort', tell, { once: true })
    for (let n = 1; !ended.aborted; n++) {
      // Without a lease a row would be free at once.
      const { worker } = lease
      try {
        if (worker !== undefined) return await claimOnce(reaction, call, worker, doubt)
      } catch (error) {
        outcomes.logger.warn({ err: error, kind, name }, 'no row was written for a slow call, so it holds its event')
      }
      await clock.sleep(reconnectDelay(n), ended).catch(() => {})
    }
    return undefined
  }

  async function claimOnce(
    reaction: Reaction,
    call: HotCall,
    worker: string,
    doubt: (token: bigint) => void,
  ): Promise<Run> {
    const claim = { token: newToken(), worker }
    const tried = { attempts: 1, sinceFirstMs: call.sinceMs(clock), error: null, claim }
    const { row, lane, added } = await write(reaction, { delayMs: 0, tried }).catch((error) => {
      // Whether there is a row now is not known; nobody works on it.
      doubt(claim.token)
      throw error
    })
    const claimed = {
      ...{ segment: added.segment, id: added.id, token: claim.token, lane: row.lane, owner: row.owner, key: row.key },
      ...{ payload: row.payload, attempts: 1, createdMs: clock.now().getTime(), suspect: false, letter: null },
    }
    return new Run(claimed, lane, reaction.work)
  }

  return {
    persistently,
    async add(reaction, words, signal) {
      await persistently(reaction, signal, () => write(reaction, words))
      parts.onSpilled(reaction.destination, words.delayMs)
    },
    claim: (reaction, call, signal) =>
      persistently(reaction, signal, () => claimOnce(reaction, call, lease.worker ?? 'gone', parts.onDoubt)),
    claimSlow,
  }
}
