/** A source of events for code that reads one, such as `for await (const event of ac.log.tail())`. */
import type { AnyEvent } from '../log/index.ts'

export interface FakeEventSource<Event = AnyEvent> extends AsyncIterableIterator<Event, undefined> {
  /** Hands events to whoever reads, now or later. */
  push(...events: Event[]): void
  /** No more will come: readers end when they have read what is there. */
  end(): void
  /** Pushed and not read yet. */
  readonly waiting: number
}

export function fakeEventSource<Event = AnyEvent>(events: readonly NoInfer<Event>[] = []): FakeEventSource<Event> {
  const queue: Event[] = [...events]
  const readers: ((result: IteratorResult<Event, undefined>) => void)[] = []
  let ended = false

  function serve(): void {
    while (readers.length > 0 && queue.length > 0) readers.shift()!({ value: queue.shift()!, done: false })
    while (ended && readers.length > 0) readers.shift()!({ value: undefined, done: true })
  }

  function end(): void {
    ended = true
    serve()
  }

  return {
    push(...more) {
      queue.push(...more)
      serve()
    },
    end,
    get waiting() {
      return queue.length
    },
    next() {
      return new Promise((resolve) => {
        readers.push(resolve)
        serve()
      })
    },
    async return() {
      queue.length = 0
      end()
      return { value: undefined, done: true }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
