/**
 * The messages of graphql-sse as the body of a response, one at a time as they are taken: by itself it would take
 * everything that comes and keep it for a client that does not read.
 */
import type { Clock } from '../runtime/index.ts'

export type Messages = AsyncGenerator<string, void, undefined>

export interface Room {
  /** There is room for one more. */
  make(): void
  wait(): Promise<void>
}

export function createRoom(gone: AbortSignal): Room {
  let isFree = false
  let waiting: (() => void) | undefined
  gone.addEventListener('abort', () => waiting?.(), { once: true })
  return {
    make() {
      isFree = true
      waiting?.()
    },
    async wait() {
      while (!isFree && !gone.aborted) await new Promise<void>((resolve) => (waiting = resolve))
      isFree = false
    },
  }
}

export interface Outflow {
  readonly request: Request
  readonly room: Room
  readonly gone: AbortController
  readonly clock: Clock
  /** A client that takes nothing for so long although there is something has gone. */
  readonly stallMs: number
}

export function toStream(
  messages: Messages,
  { request, room, gone, clock, stallMs }: Outflow,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let controller!: ReadableStreamDefaultController<Uint8Array>
  let cancelStall = () => {}
  const leave = () => {
    cancelStall()
    request.signal.removeEventListener('abort', close)
    gone.abort()
    void messages.return()
  }
  const close = () => {
    leave()
    controller.close()
  }
  const cut = () => {
    leave()
    controller.error(new Error('The client takes nothing.'))
  }

  async function pull(): Promise<void> {
    cancelStall()
    room.make()
    const { done, value } = await messages.next()
    if (gone.signal.aborted) return
    if (done) return close()
    controller.enqueue(encoder.encode(value))
    cancelStall = clock.setTimer(stallMs, cut)
  }

  request.signal.addEventListener('abort', close, { once: true })
  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
      },
      pull: () => pull().catch(cut),
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
}
