/** How far long work has come: one line that is written over in a terminal, a line every five seconds elsewhere. */
export interface Progress {
  at(done: bigint, of: bigint): void
  /** Takes the line away again. */
  end(): void
}

export interface ProgressOptions {
  readonly stream: { readonly isTTY?: boolean; write(text: string): unknown }
  readonly quiet: boolean
  readonly now?: () => number
  /** What the numbers count; positions of the log unless told. */
  readonly describe?: (done: bigint, of: bigint) => string
}

const EVERY_MS = 5_000
const CLEAR_LINE = '\r\u001b[2K'

export function createProgress({
  stream,
  quiet,
  now = Date.now,
  describe = describePosition,
}: ProgressOptions): Progress {
  if (quiet) return { at() {}, end() {} }
  if (stream.isTTY) {
    return {
      at: (done, of) => void stream.write(CLEAR_LINE + describe(done, of)),
      end: () => void stream.write(CLEAR_LINE),
    }
  }
  let saidAt = now()
  return {
    at(done, of) {
      if (now() - saidAt < EVERY_MS) return
      saidAt = now()
      stream.write(`${describe(done, of)}\n`)
    },
    end() {},
  }
}

function describePosition(done: bigint, of: bigint): string {
  return `${percentOf(done, of)} %  position ${done} of ${of}`
}

/** `▇▇▇▇······  42 %` */
export function describeBar(done: bigint, of: bigint): string {
  const full = of === 0n ? BAR : Number((done * BigInt(BAR)) / of)
  return `${'▇'.repeat(full)}${'·'.repeat(BAR - full)} ${percentOf(done, of)} %`
}

const BAR = 30

function percentOf(done: bigint, of: bigint): string {
  return String(of === 0n ? 100n : (done * 100n) / of).padStart(3)
}
