/** Whatever keeps a client from every event in order is said in the stream: lost places, slow clients, revoked rights. */
import { get, type IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hurriedClock } from '../log/support/hurried-clock.ts'
import { eventually } from '../support/eventually.ts'
import { listen, openSse } from './sse-support.ts'

const identityOf = (user: string) => ({ user, session: `session of ${user}`, token: `token of ${user}` })

describe('a place that means nothing any more', () => {
  it('is told at once, and the stream goes on from the head', async () => {
    const { feedUrl: url, emit, emitMany, sql } = await openSse()
    await emitMany(5)
    const witness = await listen(url)
    await witness.placed()
    const epoch = Number(witness.lastId!.split('.')[0])
    await sql.query('update aftercommit.log_state set kept_from = 4')
    const lost = [`${epoch}.99999`, `${epoch + 7}.2`, `${epoch}.2`, `${epoch}.9223372036854775807`]
    const streams = await Promise.all(lost.map((lastId) => listen(url, { lastId })))
    const good = await listen(url, { lastId: `${epoch}.3` })
    await Promise.all(streams.map((stream) => stream.saw('resync')))
    await emit('last')
    for (const stream of streams) {
      await stream.sees('last')
      expect(stream.frames.map(({ event }) => event)).toEqual(['resync', 'message'])
      expect(stream.frames[0]).toMatchObject({ id: `${epoch}.5`, data: `{"token":"${epoch}.5"}` })
    }
    await good.sees('last')
    expect(good.ids).toEqual(['event-4', 'event-5', 'last'])
  })

  it('an instance that is behind the one a client came from is no reason to load anew', async () => {
    const { feedUrl: url, sql, ac, server, emit } = await openSse()
    const first = await listen(url)
    await first.placed()
    await emit('one')
    await first.sees('one')
    const behind = await server()
    const waiting = await listen(behind.feedUrl)
    await waiting.placed()
    // Positions of transactions that rolled back count as come to, although no event has them.
    await sql.query(`begin; select aftercommit.emit('lamp.lit', null, null, '{}'); rollback`)
    const { last } = (await sql.query('select last_value::int as last from aftercommit.positions')).rows[0]
    const ahead = await listen(behind.feedUrl, { lastId: `${first.lastId!.split('.')[0]}.${last}` })
    await ahead.placed()
    await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'two', payload: {} }))
    await ahead.sees('two')
    expect(ahead.frames.map(({ event }) => event)).toEqual(['message'])
  })

  it('a fork is told while the stream is open, and to whoever resumes', async () => {
    const { feedUrl: url, emit, emitMany, sql, server } = await openSse({}, { clock: hurriedClock(20) })
    await emitMany(2)
    const before = await listen(url)
    await before.placed()
    const early = before.lastId
    before.close()
    const stream = await listen(url)
    await stream.placed()
    await emitMany(3, { prefix: 'later-' })
    await stream.sees('later-3')
    const late = stream.lastId
    await eventually(async () => {
      const { rows } = await sql.query('select frontier::int, witness::int from aftercommit.log_state')
      return rows[0].frontier >= 5 && rows[0].witness >= 5
    })
    await sql.query('alter table aftercommit.events disable trigger keep_history')
    await sql.query('truncate aftercommit.events; alter sequence aftercommit.positions restart')
    await stream.saw('resync')
    await emit('other')
    await stream.sees('other')
    const elsewhere = await server()
    const [resumed, stale] = [
      await listen(elsewhere.feedUrl, { lastId: stream.lastId }),
      await listen(url, { lastId: late }),
    ]
    await Promise.all([stale.saw('resync'), (await listen(url, { lastId: early })).saw('resync')])
    await emit('last')
    await Promise.all([resumed.sees('last'), stream.sees('last'), stale.sees('last')])
    expect(resumed.ids).toEqual(['last'])
    expect(stream.ids).toEqual(['later-1', 'later-2', 'later-3', 'other', 'last'])
  })
})

describe('a new epoch that shares what a client has seen', () => {
  it('is nothing to tell it', async () => {
    const { feedUrl: url, emitMany, sql, server } = await openSse({}, { clock: hurriedClock(20) })
    const stream = await listen(url)
    await stream.placed()
    await emitMany(5)
    await stream.sees('event-5')
    const [epoch] = stream.lastId!.split('.')
    await sql.query(`select setval('aftercommit.positions', 2)`)
    await eventually(
      async () => (await sql.query('select from aftercommit.epochs where epoch > $1', [epoch])).rowCount === 1,
    )
    await emitMany(2, { prefix: 'later-' })
    await stream.sees('later-2')
    expect(stream.frames.map(({ event }) => event)).toEqual(Array(7).fill('message'))
    const resumed = await listen((await server()).feedUrl, { lastId: `${epoch}.4` })
    await resumed.sees('later-2')
    expect(resumed.ids).toEqual(['event-5', 'later-1', 'later-2'])
  })
})

describe('a slow client', () => {
  it('is told that it lagged and resumes with nothing missing, while others get everything on time', async () => {
    const { feedUrl: url, ac, emit } = await openSse({ maxBuffered: { events: 40, bytes: 2_000_000 } })
    const quick = await listen(url)
    await quick.placed()
    const slow = openSlowly(url)
    await eventually(() => slow.text.includes('id: '))
    slow.response!.pause()
    const ids: string[] = []
    const text = 'x'.repeat(60_000)
    const hasLagged = async () => (await ac.metrics()).includes('aftercommit_live_lagged_total{transport="sse"} 1')
    do {
      ids.push(`event-${ids.length}`)
      await emit(ids.at(-1)!, { payload: { text } })
    } while (!(await hasLagged()))
    await quick.sees(ids.at(-1)!)
    expect(quick.ids).toEqual(ids)
    slow.response!.resume()
    await eventually(() => slow.response!.complete)
    expect(slow.text).toContain('event: lagged\n')
    const got = [...slow.text.matchAll(/"id":"(event-\d+)"/g)].map(([, id]) => id!)
    const from = /event: lagged\nid: (\S+)/.exec(slow.text)![1]!
    const resumed = await listen(url, { lastId: from })
    await emit('last')
    await resumed.sees('last')
    expect([...got, ...resumed.ids]).toEqual([...ids, 'last'])
  })

  it('one that never reads again is cut off, and the instance stops without it', async () => {
    const { feedUrl: url, ac, emit } = await openSse({ maxBuffered: { events: 10 } })
    const slow = openSlowly(url)
    await eventually(() => slow.text.includes('id: '))
    slow.response!.pause()
    const text = 'x'.repeat(500_000)
    await eventually(async () => {
      await emit(`event-${Math.random()}`, { payload: { text } })
      return (await ac.metrics()).includes('aftercommit_live_lagged_total{transport="sse"} 1')
    })
    await ac.stop()
    await eventually(
      async () =>
        (await ac.metrics()).includes('aftercommit_live_clients') &&
        !(await ac.metrics()).includes('aftercommit_live_clients{'),
    )
  })
})

describe('a client whose rights were revoked', () => {
  it.each([
    ['its session', { type: 'session_revoked', sessionId: 'session of ada' }],
    ['its token', { type: 'token_revoked', tokenId: 'token of ada' }],
    ['its session by logging out', { type: 'logout', userId: 'grace', sessionId: 'session of ada' }],
    ['its user as a whole', { type: 'logout', userId: 'ada' }],
  ] as const)('by %s, is cut off on another instance, and nobody else is', async (_, auth) => {
    const { feedUrl: url, ac, emit, server } = await openSse({ identityOf })
    const other = await server()
    const [mine, hers] = [await listen(other.feedUrl), await listen(other.feedUrl, { user: 'grace' })]
    await listen(url)
    await Promise.all([mine.placed(), hers.placed()])
    await ac.emitAuth({ type: 'session_revoked', sessionId: 'session of somebody', userId: 'ada' })
    await emit('one')
    await mine.sees('one')
    await ac.emitAuth(auth)
    await emit('two')
    await Promise.all([mine.ended, hers.sees('two')])
    expect(mine.frames.at(-1)!.event).toBe('revoked')
    expect(mine.ids).toEqual(['one'])
  })

  it('between being authorised and being served, is not served', async () => {
    const revoke: (() => Promise<unknown>)[] = []
    const {
      feedUrl: url,
      ac,
      emit,
    } = await openSse({
      identityOf,
      async authorize(request) {
        const user = request.headers.get('x-user')
        await revoke.pop()?.()
        return user
      },
    })
    const witness = await listen(url, { user: 'grace' })
    await witness.placed()
    revoke.push(async () => {
      await ac.emitAuth({ type: 'session_revoked', sessionId: 'session of ada' })
      await emit('marker')
      await witness.sees('marker')
    })
    const stream = await listen(url, { lastId: witness.lastId })
    await stream.ended
    expect(stream.frames.map(({ event }) => event)).toEqual(['revoked'])
  })

  it('long ago, and was authorised since, is served', async () => {
    const { feedUrl: url, ac, emit } = await openSse({ identityOf, on: ['*', 'auth.*'] })
    const witness = await listen(url, { user: 'grace' })
    await witness.placed()
    await ac.emitAuth({ type: 'session_revoked', sessionId: 'session of ada' })
    await emit('one')
    await witness.sees('one')
    const again = await listen(url, { lastId: witness.frames[0]!.id!.replace(/\d+$/, '0') })
    await emit('two')
    await again.sees('two')
    expect(again.frames.map(({ event }) => event)).toEqual(['message', 'message', 'message'])
  })
})

/** A client that can stop reading. */
function openSlowly(url: string): { readonly response: IncomingMessage | undefined; readonly text: string } {
  let response: IncomingMessage | undefined
  let text = ''
  const asking = get(url, { headers: { 'x-user': 'slow' } }, (given) => {
    response = given.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    response.on('error', () => {})
  })
  asking.on('error', () => {})
  onTestFinished(() => void asking.destroy())
  return {
    get response() {
      return response
    },
    get text() {
      return text
    },
  }
}
