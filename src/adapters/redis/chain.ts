/**
 * Whether what is heard is all there was. Each message names the one before it; one that does not follow what was heard
 * last tells of a gap. Pure.
 *
 * Messages are known by their content and not by being above the last position: a single forged message with a huge
 * position would make everything after it look old.
 */
import { hash } from 'node:crypto'
import type { Message } from './message.ts'

/** Some messages between these positions were not heard; null: from the beginning, or up to nobody knows where. */
export interface Gap {
  readonly from: bigint | null
  readonly to: bigint | null
}

export interface Mark {
  readonly epoch: number
  readonly position: bigint
}

export interface Chain {
  /** What a message means to one who heard all before it. */
  hear(message: Message): { readonly isNew: boolean; readonly gap: Gap | null }
  /** Listening began, or began again; `last` is what was published last, if Redis knows. */
  resume(last: Mark | null): Gap | null
}

/** Repetitions come soon after: at a hand-over, or when an answer was lost. */
const REMEMBERED = 2_000

/**
 * A message comes again with the same content. One that has only the id of another, or its position, is a message of its
 * own: a forged message must not hide the real one. A hash, because the parts may be long.
 */
function keyOf({ id, type, kind, position, epoch, version, aggregate, tenant }: Message): string {
  const content = [id, type, kind, String(position), epoch, version, aggregate?.type, aggregate?.id, tenant]
  return hash('sha256', JSON.stringify(content), 'base64')
}

export function createChain(): Chain {
  const known = new Set<string>()
  /** What was heard last; null: nothing was ever published; undefined: nobody knows yet. */
  let heard: Mark | null | undefined

  function remember(key: string): void {
    known.add(key)
    if (known.size > REMEMBERED) known.delete(known.values().next().value!)
  }

  return {
    hear(message) {
      const { epoch, position, previous } = message
      const key = keyOf(message)
      if (known.has(key)) return { isNew: false, gap: null }
      remember(key)
      const follows = heard === null ? previous === null : heard?.epoch === epoch && heard.position === previous
      const gap = follows ? null : { from: heard?.position ?? null, to: position }
      heard = { epoch, position }
      return { isNew: true, gap }
    },
    resume(last) {
      if (last !== null && last.epoch === heard?.epoch && last.position === heard.position) return null
      const gap = { from: heard?.position ?? null, to: last?.position ?? null }
      // What comes next follows what was published last: everything up to there is in this gap.
      heard = last
      return gap
    },
  }
}

/** Bytes that a listener reads of the mark. A mark is shorter; a foreign value under its key may be of any size. */
export const LONGEST_MARK = 40

/** As `publish.ts` writes it. */
export function readMark(text: string | null): Mark | null {
  const [, epoch, position] = /^(\d{1,15}):(\d{1,19})$/.exec(text ?? '') ?? []
  return epoch === undefined || position === undefined ? null : { epoch: Number(epoch), position: BigInt(position) }
}
