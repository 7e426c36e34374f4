/** The browser client against servers that are made up: what it does with whatever it is told, and when it is not. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createFrameReader } from '../../src/client/event-stream.ts'
import { type ConnectOptions, connect, FeedRefusedError, type LiveEvent } from '../../src/client/index.ts'
import { createProgress } from '../../src/client/progress.ts'
import { eventually } from '../support/eventually.ts'

describe('the stream', () => {
  it('is read the same however it is cut into pieces, whatever its lines end with', () => {
    const text =
      ': hello\nretry: 70\n\nid: 1.1\ndata: a\ndata: b\n\n:\nid: 1.2\n\nevent: lagged\nid: 1.3\ndata:{}\n\ndata\n\nid: x'
    const whole = [
      { event: 'message', id: undefined, retryMs: 70, data: undefined },
      { event: 'message', id: '1.1', retryMs: undefined, data: 'a\nb' },
      { event: 'message', id: '1.2', retryMs: undefined, data: undefined },
      { event: 'lagged', id: '1.3', retryMs: undefined, data: '{}' },
      { event: 'message', id: undefined, retryMs: undefined, data: '' },
    ]
    for (const end of ['\n', '\r\n', '\r']) {
      const written = text.replaceAll('\n', end)
      for (let size = 1; size < written.length; size++) {
        const read = createFrameReader()
        const pieces = Array.from({ length: Math.ceil(written.length / size) }, (_, n) =>
          written.slice(n * size, (n + 1) * size),
        )
        expect(pieces.flatMap((piece) => read(piece))).toEqual(whole)
      }
    }
  })
})

describe('the token', () => {
  it('never goes back within an epoch, and survives a reload where it is kept', () => {
    const kept = new Map<string, string>()
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    }
    const progress = createProgress(undefined, storage, 'feed')
    progress.advance('1.10')
    progress.advance('1.9')
    expect([progress.token, progress.isNew('1.10'), progress.isNew('1.11'), progress.isNew('2.3')]).toEqual([
      '1.10',
      false,
      true,
      true,
    ])
    expect(progress.isNew('1.9007199254740993')).toBe(true)
    progress.save()
    expect(createProgress(undefined, storage, 'feed').token).toBe('1.10')
    kept.set('feed', '<script>')
    expect(createProgress(undefined, storage, 'feed').token).toBeUndefined()
    progress.reset('1.2')
    expect(progress.token).toBe('1.2')
  })
})

describe('a connection', () => {
  it('gives every event once, over a stream that breaks and one that repeats itself', async () => {
    const { got, asked, connection } = follow([
      () => [HINT, event(1), event(2)],
      () => [HINT, event(2), event(3), 'OPEN'],
    ])
    await eventually(() => got.length === 3)
    expect(got).toEqual(['1', '2', '3'])
    expect(asked.map(({ searchParams }) => searchParams.get('from'))).toEqual([null, '1.2'])
    expect(connection.token).toBe('1.3')
    expect(connection.state).toBe('open')
  })

  it('moves on without an event where the server says so', async () => {
    const { connection, asked } = follow([() => [HINT, ':\nid: 1.70\n\n'], () => [HINT, 'OPEN']])
    await eventually(() => asked.length === 2)
    expect(asked[1]!.searchParams.get('from')).toBe('1.70')
    connection.close()
  })

  it('an event whose callback throws comes again, and those after it wait', async () => {
    let tries = 0
    const { got } = follow([() => [HINT, event(1), event(2)], () => [HINT, event(1), event(2), 'OPEN']], {
      onEvent({ id }) {
        if (id === '1' && tries++ === 0) throw new Error('not yet')
        got.push(id)
      },
    })
    await eventually(() => got.length === 2)
    expect(got).toEqual(['1', '2'])
    expect(tries).toBe(2)
  })

  it('loads anew when told to, and again if that failed', async () => {
    const resyncs: string[] = []
    const resync = 'event: resync\nid: 2.5\ndata: {"token":"2.5"}\n\n'
    const { got, asked } = follow(
      [() => [HINT, event(9), resync, event(6, 2)], () => [HINT, resync, event(6, 2), 'OPEN']],
      {
        onResync(token) {
          resyncs.push(token)
          if (resyncs.length === 1) throw new Error('the page could not be loaded')
        },
      },
    )
    await eventually(() => got.length === 2)
    expect([got, resyncs, asked[1]!.searchParams.get('from')]).toEqual([['9', '6'], ['2.5', '2.5'], '1.9'])
  })

  it('tells that it lagged, and resumes by itself', async () => {
    const lagged: string[] = []
    const { got } = follow(
      [() => [HINT, event(1), 'event: lagged\nid: 1.1\ndata: {"from":"1.1"}\n\n'], () => [HINT, event(2), 'OPEN']],
      { onLagged: (from) => lagged.push(from) },
    )
    await eventually(() => got.length === 2)
    expect(lagged).toEqual(['1.1'])
  })

  it('notices silence, and is not deceived by a callback that takes long', async () => {
    const { got, asked } = follow([() => [HINT, event(1), event(2), 'OPEN'], () => [HINT, event(3), 'OPEN']], {
      silenceMs: 60,
      async onEvent({ id }) {
        if (id === '1') await new Promise((resolve) => setTimeout(resolve, 200))
        got.push(id)
        if (id === '2') expect(asked).toHaveLength(1)
      },
    })
    await eventually(() => got.length === 3)
    expect(got).toEqual(['1', '2', '3'])
  })

  it('is closed for good by a refusal, unless it can renew what it is asked for', async () => {
    const refused = follow([() => 401])
    const error = (await refused.connection.closed) as FeedRefusedError
    expect([error.name, error.status, refused.connection.state]).toEqual(['FeedRefusedError', 401, 'closed'])
    expect(((await follow([() => [HINT, REVOKED]]).connection.closed) as FeedRefusedError).status).toBe(0)
    expect(await follow([() => 404]).connection.closed).toBeInstanceOf(FeedRefusedError)

    let token = 0
    const renewed = follow([() => 401, () => 503, () => [HINT, REVOKED], () => [HINT, event(1), 'OPEN']], {
      headers: async () => ({ authorization: `Bearer ${++token}` }),
    })
    await eventually(() => renewed.got.length === 1)
    expect(renewed.sent.map(({ authorization }) => authorization)).toEqual([1, 2, 3, 4].map((n) => `Bearer ${n}`))
  })

  it('is read with for await, one event at a time, and closed by leaving the loop', async () => {
    const { connection, asked } = follow([() => [HINT, event(1), event(2), event(3), 'OPEN']], { onEvent: undefined })
    const got: string[] = []
    for await (const { id } of connection) {
      got.push(id)
      expect(connection.token).toBe(got.length === 1 ? undefined : `1.${got.length - 1}`)
      if (got.length === 2) break
    }
    expect(await connection.closed).toBeUndefined()
    expect([got, asked.length, connection.state]).toEqual([['1', '2'], 1, 'closed'])
    const rest = []
    for await (const one of follow([() => [HINT, event(4)], () => 404], { onEvent: undefined, from: '1.3' })
      .connection) {
      rest.push(one.id)
      if (rest.length === 1) break
    }
    expect(rest).toEqual(['4'])
  })

  it('that is closed by whoever hears that it waits does not wait', async () => {
    const { connection } = follow([() => ['retry: 30000\n\n']], {
      onState: (state) => state === 'waiting' && connection.close(),
    })
    expect(await connection.closed).toBeUndefined()
  })

  it('does not wait for ever for headers, and is closed while it does', async () => {
    let asked = 0
    const { connection, got } = follow([() => [HINT, event(1), 'OPEN']], {
      silenceMs: 30,
      headers: () => (++asked === 1 ? new Promise(() => {}) : { authorization: 'Bearer 2' }),
    })
    await eventually(() => got.length === 1)
    connection.close()
    const hanging = follow([() => [HINT, 'OPEN']], { headers: () => new Promise(() => {}) })
    hanging.connection.close()
    expect(await hanging.connection.closed).toBeUndefined()
  })

  it('waits longer each time while no event can be dealt with, whatever the server hints', async () => {
    for (const hint of ['retry: 0\n\n', 'retry: 1000\n\n']) {
      const pauses = watchPauses()
      const { connection } = follow([() => [hint, event(1)]], {
        onEvent() {
          throw new Error('never')
        },
      })
      for (let tries = 1; tries <= 8; tries++) (await eventually(() => pauses[tries - 1])).end()
      connection.close()
      await connection.closed
      const longest = pauses.map(({ ms }) => ms)
      expect(longest[0]).toBeGreaterThan(0)
      expect(longest[7]).toBeGreaterThan(longest[0]! * 2)
      vi.restoreAllMocks()
    }
  })
})

/** The pauses between two attempts, each of which lasts until it is ended. */
function watchPauses() {
  const pauses: { ms: number; end(): void }[] = []
  const setTimer = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((end: () => void, ms = 0) => {
    if (!new Error().stack?.includes('client/connect')) return setTimer(end, ms)
    pauses.push({ ms, end })
    return undefined
  }) as typeof setTimeout)
  onTestFinished(() => void vi.restoreAllMocks())
  return pauses
}

const HINT = 'retry: 5\n\n'
const REVOKED = 'event: revoked\ndata: {}\n\n'

function event(position: number, epoch = 1): string {
  return `id: ${epoch}.${position}\ndata: ${JSON.stringify({ id: String(position), type: 'lamp.lit', data: {} })}\n\n`
}

/** What a server answers: a status, or pieces of a stream, which stays open after `OPEN` and ends otherwise. */
type Answer = () => number | string[]

function follow(answers: Answer[], options: Partial<ConnectOptions> = {}) {
  const got: string[] = []
  const asked: URL[] = []
  const sent: Record<string, string>[] = []
  const pending = [...answers]
  const fakeFetch = (async (
    url: URL,
    { headers, signal }: { headers: Record<string, string>; signal: AbortSignal },
  ) => {
    asked.push(url)
    sent.push(headers)
    const answer = (pending.length > 1 ? pending.shift()! : pending[0]!)()
    if (typeof answer === 'number') return new Response(null, { status: answer })
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal.addEventListener('abort', () => controller.error(signal.reason))
        for (const piece of answer) if (piece !== 'OPEN') controller.enqueue(new TextEncoder().encode(piece))
        if (answer.at(-1) !== 'OPEN') controller.close()
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }) as unknown as typeof fetch
  const connection = connect({
    url: 'http://feed.example/feed',
    onEvent: ({ id }: LiveEvent) => got.push(id),
    onResync: () => {},
    fetch: fakeFetch,
    ...options,
  })
  onTestFinished(() => connection.close())
  return { connection, got, asked, sent }
}
