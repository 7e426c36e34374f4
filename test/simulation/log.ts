/** The log and what a process sees of it. How the log becomes final is not simulated: positions come in order here. */
import { AftercommitEvent } from '../../src/events/index.ts'
import type { AnyEvent, FilteredPage, PageFilter, Tailer } from '../../src/log/index.ts'
import type { Path } from './path.ts'
import type { Process } from './process.ts'

const RECORDED = new Date(Date.UTC(2030, 0, 1))
const METADATA = {
  correlationId: null,
  causationId: null,
  userId: null,
  traceparent: null,
  schemaVersion: 1,
  depth: 0,
}

export class Log {
  readonly events: AnyEvent[] = []
  head = 0

  /** `hole`: positions before it whose transactions were rolled back. */
  commit(key: string, hole: number): AnyEvent {
    this.head += 1 + hole
    const event = new AftercommitEvent({
      id: `e${this.head}`,
      type: 'order.paid',
      position: BigInt(this.head),
      aggregateType: 'order',
      aggregateId: key,
      version: null,
      payload: {},
      changes: null,
      previous: null,
      tenant: null,
      metadata: METADATA,
      occurredAt: RECORDED,
      recordedAt: RECORDED,
    })
    this.events.push(event)
    return event
  }

  after(position: bigint, upTo: bigint, limit: number): AnyEvent[] {
    const found: AnyEvent[] = []
    for (let at = this.#indexAfter(position); at < this.events.length && found.length < limit; at++) {
      const event = this.events[at]!
      if (event.position > upTo) break
      found.push(event)
    }
    return found
  }

  #indexAfter(position: bigint): number {
    let [low, high] = [0, this.events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.events[middle]!.position <= position) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The tailer of one process, in as far as subscriptions use it. */
export class SimulatedTailer implements Pick<Tailer, 'epoch' | 'frontier' | 'readFiltered' | 'waitBeyond'> {
  readonly epoch = 1
  frontier: bigint
  readonly #log: Log
  readonly #path: Path
  readonly #process: Process
  readonly #recent: number
  readonly #waiting = new Set<() => void>()

  constructor(log: Log, path: Path, process: Process, recent: number) {
    this.#log = log
    this.#path = path
    this.#process = process
    this.#recent = recent
    this.frontier = BigInt(log.head)
  }

  /** The process hears that the log is final up to here. */
  reached(position: bigint): void {
    if (position <= this.frontier) return
    this.frontier = position
    for (const tell of [...this.#waiting]) tell()
  }

  async readFiltered(after: bigint, limit: number, { window }: PageFilter): Promise<FilteredPage> {
    const upTo = this.frontier
    const read = () => this.#log.after(after, upTo, limit)
    const isAtHand = this.#process.world.random.chance(this.#recent)
    const events = isAtHand ? read() : await this.#path.ask(read)
    return { events, upTo: events.length < limit ? upTo : events.at(-1)!.position, window }
  }

  waitBeyond(after: bigint, signal: AbortSignal): Promise<void> {
    if (this.frontier > after || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const tell = () => {
        this.#waiting.delete(tell)
        signal.removeEventListener('abort', tell)
        resolve()
      }
      this.#waiting.add(tell)
      signal.addEventListener('abort', tell, { once: true })
    })
  }
}
