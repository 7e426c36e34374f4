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
  /** A row that waits. The signal is that of the event's subscription. */
  add(reaction: Reaction, words: Pick<AddedRow, 'delayMs' | 'tried'>, signal: () => AbortSignal): Promise<void>
  /** A row for a call that is under way, as if this worker had claimed it. */
  claim(reaction: Reaction, call: HotCall, signal: () => AbortSignal): Promise<Run>
}

/** A migration under way may refuse for a moment what is right. */
const MOST_REFUSALS = 6

export function createKeeping(parts: ReactionParts, held: HeldKeys): Keeping {
  const { clock, lanes, lease } = parts
  const { spill } = createSpiller(parts.db)

  async function toRow(reaction: Reaction, words: Pick<AddedRow, 'delayMs' | 'tried'>) {
    const { work, owner, destination, tenant, key, priority } = reaction
    // Order is kept within a lane, so everything of a name that has one shares it.
    const own = key === null ? { tenant, priority } : { tenant: '', priority: 0 }
    const lane: Omit<Lane, 'lane'> = { kind: work.kind, name: work.name, destination, ...own }
    const number = await lanes.numberOf(lane)
    const payload = stringifyJson(reaction.payload(), {
      maxBytes: Number.MAX_SAFE_INTEGER,
      maxDepth: 1_000,
      name: 'payload',
    })
    const row: AddedRow = {
      ...{ lane: number, owner, key, ordered: key !== null, uniqueKey: null, payload, runAt: null },
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
   * What has an order is written until it is, or until somebody else reads the event: a refusal would let the later events
   * of its key overtake it. What no repetition seems to mend, and whatever else is refused, comes back with its event.
   */
  async function persistently<T>({ key }: Reaction, signal: () => AbortSignal, attempt: () => Promise<T>): Promise<T> {
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

  async function claimOnce(reaction: Reaction, call: HotCall): Promise<Run> {
    const claim = { token: newToken(), worker: lease.worker ?? 'gone' }
    const tried = { attempts: 1, sinceFirstMs: call.sinceMs(clock), error: null, claim }
    const { row, lane, added } = await write(reaction, { delayMs: 0, tried }).catch((error) => {
      // Whether there is a row now is not known; nobody works on it.
      parts.onDoubt(claim.token)
      throw error
    })
    const claimed = {
      ...{ segment: added.segment, id: added.id, token: claim.token, lane: row.lane, owner: row.owner, key: row.key },
      ...{ payload: row.payload, attempts: 1, createdMs: clock.now().getTime(), suspect: false, letter: null },
    }
    return new Run(claimed, lane, reaction.work)
  }

  return {
    async add(reaction, words, signal) {
      await persistently(reaction, signal, () => write(reaction, words))
      parts.onSpilled(reaction.destination, words.delayMs)
    },
    claim: (reaction, call, signal) => persistently(reaction, signal, () => claimOnce(reaction, call)),
  }
}
