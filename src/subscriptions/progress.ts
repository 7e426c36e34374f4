/**
 * How far a subscription has come: everything up to `scanned` was read; of that, only what is held is not finished. The
 * checkpoint is the position below the lowest held one, and what is finished above it as ranges. Pure.
 */
export interface Checkpoint {
  readonly position: bigint
  /** A multirange in Postgres' notation. */
  readonly done: string
  readonly lastEventId: string | null
}

export class Progress {
  /** Everything at or below was read. */
  scanned: bigint
  lastEventId: string | null = null
  readonly #unfinished = new Set<bigint>()
  /** What an earlier owner had finished above its checkpoint. */
  #finishedBefore: readonly Range[]

  constructor(position: bigint, done: string) {
    this.scanned = position
    this.#finishedBefore = parseRanges(done)
  }

  get held(): number {
    return this.#unfinished.size
  }

  /** Read, and to be finished. */
  take(position: bigint): void {
    this.#unfinished.add(position)
    this.pass(position)
  }

  /** Read, and nothing to do with it. */
  pass(position: bigint): void {
    if (position > this.scanned) this.scanned = position
  }

  /** What was read and is not finished, in order: positions are taken in order. */
  open(): bigint[] {
    return [...this.#unfinished]
  }

  finish(position: bigint, eventId: string): void {
    this.#unfinished.delete(position)
    this.lastEventId = eventId
  }

  /** Whether an earlier owner finished this already. */
  wasFinished(position: bigint): boolean {
    if (this.#finishedBefore.length === 0) return false
    const last = this.#finishedBefore.at(-1)!
    if (position > last.to) {
      this.#finishedBefore = []
      return false
    }
    return this.#finishedBefore.some((range) => position >= range.from && position <= range.to)
  }

  /** `also`: as if these were finished too, for a checkpoint written in the transaction that finishes them. */
  checkpoint(also: readonly { position: bigint; id: string }[] = []): Checkpoint {
    const lastEventId = also.at(-1)?.id ?? this.lastEventId
    const finishing = new Set(also.map(({ position }) => position))
    const open = finishing.size === 0 ? this.open() : this.open().filter((position) => !finishing.has(position))
    const reached = this.scanned
    if (open.length === 0) {
      return {
        position: reached,
        done: formatRanges(this.#finishedBefore.filter(({ to }) => to > reached)),
        lastEventId,
      }
    }
    const ranges: Range[] = []
    for (let i = 0; i < open.length; i++) {
      const from = open[i]! + 1n
      const to = i + 1 < open.length ? open[i + 1]! - 1n : reached
      if (from <= to) ranges.push({ from, to })
    }
    const beyond = this.#finishedBefore.filter(({ to }) => to > reached)
    return { position: open[0]! - 1n, done: formatRanges([...ranges, ...beyond]), lastEventId }
  }
}

interface Range {
  readonly from: bigint
  readonly to: bigint
}

/** Postgres writes discrete ranges as `[from,to)`. */
function parseRanges(text: string): Range[] {
  return [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, to]) => ({ from: BigInt(from!), to: BigInt(to!) - 1n }))
}

function formatRanges(ranges: readonly Range[]): string {
  return `{${ranges.map(({ from, to }) => `[${from},${to + 1n})`).join(',')}}`
}
