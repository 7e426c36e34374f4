/** The counts of a receipt and the one sentence at its top. Pure. */
import { isOpen } from './open-items.ts'
import type { Reaction, Receipt, ReceiptCounts } from './receipt.ts'

export function countReactions({
  subscriptions,
  observers,
  work,
}: Pick<Receipt, 'subscriptions' | 'observers' | 'work'>): ReceiptCounts {
  const all: Reaction[] = [...subscriptions, ...observers.flatMap(({ actions }) => actions), ...work]
  const of = (...states: Reaction['state'][]) => all.filter(({ state }) => states.includes(state)).length
  const counts = {
    done: of('done', 'unrecorded'),
    running: of('running'),
    scheduled: of('scheduled', 'retrying'),
    dead: of('dead'),
    discarded: of('discarded', 'skipped'),
  }
  return {
    total: all.length,
    ...counts,
    waiting: all.filter(isOpen).length - counts.running - counts.scheduled - counts.dead,
  }
}

export function sentenceOf(counts: ReceiptCounts, isSettled: boolean): string {
  const { total, done, running, waiting, scheduled, dead, discarded } = counts
  if (total === 0) return 'Nothing follows it: no subscription, observer or workflow takes it.'
  if (isSettled && done === total)
    return `Settled. ${total === 1 ? 'The one thing' : `All ${total} things`} that followed ${total === 1 ? 'is' : 'are'} done.`
  const parts = [
    say(done, 'done'),
    say(running, 'running'),
    say(waiting, 'waiting'),
    say(scheduled, 'set for later'),
    say(dead, 'dead'),
    say(discarded, 'given up'),
  ].filter((text) => text !== '')
  const rest = isSettled && parts.length > 0 ? 'Settled.' : 'Not settled.'
  return `${rest} Of ${total} ${total === 1 ? 'thing' : 'things'} that followed, ${join(parts)}.`
}

function say(count: number, word: string): string {
  return count === 0 ? '' : `${count} ${count === 1 ? 'is' : 'are'} ${word}`
}

function join(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}
