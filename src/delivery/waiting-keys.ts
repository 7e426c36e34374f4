/**
 * Which keys of ordered work have something that waits, so that later events of them must queue behind it. Known in the
 * process that reads the events, which alone adds to it; asked again now and then, since others work the rows off. Only
 * keys at hand are asked for, those that come together in one statement: there may be a million that wait. States:
 *
 *   all known    what was not found at the beginning, nor added here, is free; only what is held is asked for
 *   too many     whatever is not remembered is asked for; now and then it is looked whether all can be known again
 */
import type { Queryable } from '../postgres/index.ts'
import { type Clock, createInTurn } from '../runtime/index.ts'
import type { Reaction } from './first-attempts.ts'
import { type OrderedKey, selectAllWaiting, selectWaiting } from './waiting-keys-statements.ts'

export interface WaitingKeys {
  /** At once where it is known. */
  isHeld(reaction: Reaction, key: string): boolean | Promise<boolean>
  /** A row or a letter of this key is about to be written here. Call the returned function when it is committed. */
  hold(name: string, key: string): () => void
  /** Looks for everything, and forgets what was about to be written: before the first event, and after another process has read. */
  load(): Promise<void>
}

const FRESH_MS = 1_000
const LOAD_AGAIN_MS = 30_000
const MOST_KNOWN = 10_000

export function createWaitingKeys(db: Queryable, clock: Clock, mostKnown = MOST_KNOWN): WaitingKeys {
  /** When it was found held, or that it is free. Least recent first. */
  const known = new Map<string, number | 'free'>()
  let isAllKnown = false
  let loadedMs = Number.NEGATIVE_INFINITY
  /** Rows that a look cannot see yet, and how many. */
  const writing = new Map<string, number>()
  /** Written since the look that is under way began. */
  let written = new Set<string>()
  let asked = new Map<string, OrderedKey>()
  let nextLook: Promise<ReadonlySet<string>> | undefined
  /** One look at a time; callers that ask during a look share the next one. */
  const inTurn = createInTurn()

  /** Undefined when that has to be asked. */
  function recall(text: string): boolean | undefined {
    if (writing.has(text)) return true
    const found = known.get(text)
    if (found === undefined) return isAllKnown ? false : undefined
    if (found === 'free') return false
    return clock.monotonic() - found < FRESH_MS ? true : undefined
  }

  function remember(text: string, isHeld: boolean): void {
    known.delete(text)
    if (isHeld) known.set(text, clock.monotonic())
    else if (!isAllKnown) known.set(text, 'free')
    if (known.size <= mostKnown) return
    isAllKnown = false
    known.delete(known.keys().next().value!)
  }

  /** Answers which of them are held. */
  function ask(lines: readonly OrderedKey[]): Promise<ReadonlySet<string>> {
    for (const line of lines) asked.set(toText(line), line)
    nextLook ??= inTurn(look)
    return nextLook
  }

  async function look(): Promise<ReadonlySet<string>> {
    const lines = asked
    asked = new Map()
    nextLook = undefined
    if (!isAllKnown && clock.monotonic() - loadedMs >= LOAD_AGAIN_MS) await lookForAll()
    written = new Set()
    const found = await selectWaiting(db, [...lines.values()])
    const held = new Set([...found.map(toText), ...written, ...writing.keys()])
    for (const text of lines.keys()) remember(text, held.has(text))
    return held
  }

  async function lookForAll(): Promise<void> {
    written = new Set()
    const found = await selectAllWaiting(db, mostKnown)
    loadedMs = clock.monotonic()
    known.clear()
    isAllKnown = found !== undefined
    for (const text of [...(found ?? []).map(toText), ...written]) remember(text, true)
  }

  return {
    isHeld(reaction, key) {
      const line = toOrderedKey(reaction, key)
      const text = toText(line)
      // Of a sequence, the row of the next comes with the end of the one before: either is seen, or both are gone.
      const lines = () => [line, ...(reaction.followers ?? []).map((follower) => toOrderedKey(follower, key))]
      return recall(text) ?? ask(lines()).then((held) => held.has(text))
    },
    hold(name, key) {
      const text = toText({ name, key })
      writing.set(text, (writing.get(text) ?? 0) + 1)
      return () => {
        // A look that is under way began before the row was there.
        written.add(text)
        // One more behind others says nothing new of them: they are looked for when they would have been.
        if (typeof known.get(text) !== 'number') remember(text, true)
        const left = (writing.get(text) ?? 1) - 1
        if (left === 0) writing.delete(text)
        else writing.set(text, left)
      }
    },
    load: () => {
      writing.clear()
      return inTurn(lookForAll)
    },
  }
}

function toOrderedKey({ work, owner }: Pick<Reaction, 'work' | 'owner'>, key: string): OrderedKey {
  return { kind: work.kind, name: work.name, owner, key }
}

function toText({ name, key }: Pick<OrderedKey, 'name' | 'key'>): string {
  return `${name}\u0000${key}`
}
