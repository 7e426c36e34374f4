/** What a client of `ac.live.sse` gets, on one instance and on several. */

import type { AddressInfo } from 'node:net'
import { serve as serveHono } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { byHeader, feedOf, listen, openSse, serve } from './sse-support.ts'

describe.each([{ major: 18 }, { major: 14 }] as const)('an event stream, on Postgres $major', ({ major }) => {
  it('sends what is emitted from now on, as CloudEvents with a token', async () => {
    const { feedUrl: url, emit } = await openSse({}, { major })
    await emit('before')
    const stream = await listen(url)
    await stream.placed()
    await emit('one', { key: '7', payload: { volts: 3 } })
    await stream.sees('one')
    expect(stream.ids).toEqual(['one'])
    expect(stream.frames[0]).toMatchObject({ event: 'message', id: expect.stringMatching(/^\d+\.2$/) })
    expect(JSON.parse(stream.frames[0]!.data)).toMatchObject({
      specversion: '1.0',
      id: 'one',
      type: 'lamp.lit',
      subject: 'lamp/7',
      data: { volts: 3 },
    })
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
  })

  it('resumes after its token, on another instance', async () => {
    const { feedUrl: url, emit, emitMany, server } = await openSse({}, { major })
    const first = await listen(url)
    await first.placed()
    await emit('one')
    await first.sees('one')
    first.close()
    await emitMany(1_200)
    const second = await server()
    const resumed = await listen(second.feedUrl, { lastId: first.lastId })
    await emit('last')
    await resumed.sees('last')
    expect(resumed.ids).toEqual([...Array.from({ length: 1_200 }, (_, n) => `event-${n + 1}`), 'last'])
  })
})

describe('what a client asks for', () => {
  it('is what it gets, within what the feed offers', async () => {
    const { feedUrl: url, emit } = await openSse({ on: ['lamp.*', 'door.opened'] })
    const all = await listen(url)
    const lamps = await listen(url, { query: { types: 'lamp.*,window.*' } })
    const doors = await listen(url, { query: { types: 'door.**' } })
    const one = await listen(url, { query: { aggregate_type: 'lamp', aggregate_id: '1' } })
    for (const stream of [all, lamps, doors, one]) await stream.placed()
    await emit('lit-1', { type: 'lamp.lit', key: '1' })
    await emit('lit-2', { type: 'lamp.lit', key: '2' })
    await emit('window', { type: 'window.opened' })
    await emit('opened', { type: 'door.opened' })
    await emit('closed', { type: 'door.closed' })
    await emit('last', { type: 'lamp.broken', key: '1' })
    await all.sees('last')
    expect(all.ids).toEqual(['lit-1', 'lit-2', 'opened', 'last'])
    await lamps.sees('last')
    expect(lamps.ids).toEqual(['lit-1', 'lit-2', 'last'])
    await one.sees('last')
    expect(one.ids).toEqual(['lit-1', 'last'])
    await doors.sees('opened')
    expect(doors.ids).toEqual(['opened'])
  })

  it('never reaches the sessions of others by a wildcard', async () => {
    const { feedUrl: url, ac, emit, server } = await openSse()
    const named = await server({ on: ['*', 'auth.login'] })
    const [plain, told] = [await listen(url, { query: { types: 'auth.*,lamp.*' } }), await listen(named.feedUrl)]
    await Promise.all([plain.placed(), told.placed()])
    await ac.emitAuth({ type: 'login', userId: 'grace', sessionId: 's-1' })
    await ac.emitAuth({ type: 'logout', userId: 'grace', sessionId: 's-1' })
    await emit('last')
    await Promise.all([plain.sees('last'), told.sees('last')])
    expect(plain.ids).toEqual(['last'])
    expect(told.frames.map(({ data }) => JSON.parse(data).type)).toEqual(['auth.login', 'lamp.lit'])
  })

  it('is looked for in the past as it is in the present', async () => {
    const { feedUrl: url, emit, emitMany, server } = await openSse()
    const here = await listen(url)
    await here.placed()
    const start = here.lastId
    await emitMany(700, { type: 'window.opened', prefix: 'w-' })
    await emit('lit', { type: 'lamp.lit', key: '1' })
    await emitMany(700, { type: 'window.closed', prefix: 'v-' })
    const elsewhere = await server()
    const late = await listen(elsewhere.feedUrl, {
      lastId: start,
      query: { types: 'lamp.*', aggregate_type: 'lamp' },
    })
    await emit('dark', { type: 'lamp.dark', key: '1' })
    await late.sees('dark')
    expect(late.ids).toEqual(['lit', 'dark'])
  })
})

describe('who may see what', () => {
  it('is asked for each event, in order, at once or later', async () => {
    const { feedUrl: url, emitMany } = await openSse({
      async allows(user, { key }) {
        if (user === 'slow') await new Promise((resolve) => setTimeout(resolve, 1))
        return key === (user === 'ada' ? 'lamp/1' : 'lamp/2')
      },
    })
    const [ada, slow] = [await listen(url), await listen(url, { user: 'slow' })]
    await Promise.all([ada.placed(), slow.placed()])
    await emitMany(30, { keys: 3 })
    await Promise.all([ada.sees('event-28'), slow.sees('event-29')])
    expect(ada.ids).toEqual(Array.from({ length: 10 }, (_, n) => `event-${3 * n + 1}`))
    expect(slow.ids).toEqual(Array.from({ length: 10 }, (_, n) => `event-${3 * n + 2}`))
  })

  it('an answer that fails cuts the client off before the event, and it may resume', async () => {
    let isDown = true
    const { feedUrl: url, emit } = await openSse({
      allows(_user, { id }) {
        if (id === 'two' && isDown) throw new Error('the rights cannot be read')
        return true
      },
    })
    const first = await listen(url)
    await first.placed()
    await emit('one')
    await first.sees('one')
    await emit('two')
    await first.ended
    expect(first.ids).toEqual(['one'])
    expect(first.text).not.toContain('rights')
    isDown = false
    const second = await listen(url, { lastId: first.lastId })
    await second.sees('two')
    expect(second.ids).toEqual(['two'])
  })

  it('is bound to the tenant of the principal, whoever asks', async () => {
    const { feedUrl: url, emit } = await openSse({ tenantOf: (user) => (user === 'nobody' ? null : user) })
    const stream = await listen(url, { user: 'north' })
    await stream.placed()
    await emit('theirs', { tenant: 'south' })
    await emit('nobodys')
    await emit('ours', { tenant: 'north' })
    await stream.sees('ours')
    expect(stream.ids).toEqual(['ours'])
    expect((await listen(url, { user: 'nobody' })).response.status).toBe(403)
  })

  it('one that changes the event it is asked about changes nothing for others', async () => {
    const { feedUrl: url, emit } = await openSse({
      allows(_user, event) {
        Reflect.set(event.payload as object, 'volts', 0)
        return true
      },
    })
    const stream = await listen(url)
    await stream.placed()
    await emit('one', { payload: { volts: 3 } })
    await stream.sees('one')
    expect(JSON.parse(stream.frames[0]!.data).data).toEqual({ volts: 3 })
  })
})

describe('what is sent', () => {
  it('is what `project` makes of it: once for all, or for each by who asks', async () => {
    let calls = 0
    const shared = await openSse({
      project(event) {
        calls++
        return event.type === 'lamp.dark' ? undefined : { id: event.id }
      },
    })
    const both = [await listen(shared.feedUrl), await listen(shared.feedUrl, { user: 'bob' })]
    for (const stream of both) await stream.placed()
    await shared.emit('dark', { type: 'lamp.dark' })
    await shared.emit('lit')
    for (const stream of both) await stream.sees('lit')
    expect(both.map(({ frames }) => frames.map(({ data }) => data))).toEqual([['{"id":"lit"}'], ['{"id":"lit"}']])
    expect(calls).toBe(2)

    const each = await shared.server({ project: (event, user) => ({ id: event.id, for: user }) })
    const [ada, bob] = [await listen(each.feedUrl), await listen(each.feedUrl, { user: 'bob' })]
    await Promise.all([ada.placed(), bob.placed()])
    await shared.emit('again')
    await Promise.all([ada.sees('again'), bob.sees('again')])
    expect(ada.frames[0]!.data).toBe('{"id":"again","for":"ada"}')
    expect(bob.frames[0]!.data).toBe('{"id":"again","for":"bob"}')
  })

  it('an event that cannot be shown is no silent gap: the client is told to load anew', async () => {
    const { feedUrl: url, emit } = await openSse({
      project(event) {
        if (event.id === 'bad') throw new Error('secret of the event')
        return { id: event.id }
      },
    })
    const stream = await listen(url)
    await stream.placed()
    for (const id of ['one', 'bad', 'two']) await emit(id)
    await stream.sees('two')
    expect(stream.frames.map(({ event }) => event)).toEqual(['message', 'resync', 'message'])
    expect(stream.text).not.toContain('secret')
  })

  it('a quiet connection shows that it lives, and how far it has come without an event for it', async () => {
    const { feedUrl: url, emit } = await openSse({ heartbeat: '100ms' })
    const stream = await listen(url, { query: { types: 'door.*' } })
    await stream.placed()
    const { position } = await emit('lamp')
    await eventually(() => stream.lastId?.endsWith(`.${position}`))
    expect(stream.text).toMatch(/\n:\n/)
    expect(stream.frames).toEqual([])
  })
})

describe('the handler', () => {
  it('serves a Fetch server and Express as it serves Node', async () => {
    const { ac, emit } = await openSse()
    const feed = feedOf(ac)
    const app = new Hono()
    app.get('/feed', (context) => feed(context.req.raw))
    const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
    onTestFinished(() => void server.close())
    await eventually(() => server.address() !== null)
    const hono = `http://127.0.0.1:${(server.address() as AddressInfo).port}/feed`
    const routed = express()
    routed.use('/live', (req, res) => void feed.node(req, res))
    const underExpress = (await serve(routed)).replace('/feed', '/live')
    const streams = [await listen(hono), await listen(underExpress, { query: { types: 'lamp.*' } })]
    for (const stream of streams) await stream.placed()
    await emit('one')
    for (const stream of streams) await stream.sees('one')
    streams[0]!.close()
    await eventually(async () => (await ac.metrics()).includes('aftercommit_live_clients{transport="sse"} 1'))
  })

  it('does not exist without `authorize`, and refuses whom that does not know', async () => {
    const { ac, feedUrl: url } = await openSse()
    const incomplete = {} as { authorize: typeof byHeader }
    expect(() => ac.live.sse(incomplete)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
    expect(() => feedOf(ac, { on: ['No Pattern'] })).toThrow(expect.objectContaining({ code: 'BAD_PATTERN' }))
    expect(() => feedOf(ac, { cors: { origins: ['shop.example'] } })).toThrow(/origin/)
    const { response } = await listen(url, { user: null })
    expect(response.status).toBe(401)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })

  it('refuses whom `authorize` answers with false', async () => {
    const { ac } = await openSse()
    const feed = ac.live.sse({ authorize: (request) => request.headers.get('x-key') === 'secret' })
    expect((await feed(new Request('http://localhost/feed'))).status).toBe(401)
  })

  it('forgets a client that left while it was looked at', async () => {
    const { ac } = await openSse()
    const leaving = new AbortController()
    const feed = feedOf(ac, {
      maxClients: 1,
      authorize(request) {
        leaving.abort()
        return byHeader(request)
      },
    })
    const ask = (signal?: AbortSignal) =>
      feed(new Request('http://localhost/feed', { headers: { 'x-user': 'ada' }, ...(signal && { signal }) }))
    const left = await ask(leaving.signal)
    await eventually(async () => {
      const { status, body } = await ask()
      await body?.cancel()
      return status === 200
    })
    await left.body?.cancel().catch(() => {})
  })

  it('takes so many clients and no more, until one leaves', async () => {
    const { feedUrl: url } = await openSse({ maxClients: 2 })
    const streams = await Promise.all(Array.from({ length: 5 }, () => listen(url)))
    const served = streams.filter(({ response }) => response.status === 200)
    expect(streams.map(({ response }) => response.status).sort()).toEqual([200, 200, 503, 503, 503])
    served[0]!.close()
    await eventually(async () => (await listen(url)).response.status === 200)
  })

  it('ends every stream when the instance stops, with a hint when to come back', async () => {
    const { ac, feedUrl: url, emit } = await openSse()
    const stream = await listen(url)
    await stream.placed()
    const { position } = await emit('one')
    await stream.sees('one')
    await ac.stop()
    await stream.ended
    expect(stream.text).toMatch(new RegExp(`retry: \\d+\\nid: \\d+\\.${position}\\n\\n$`))
    expect((await listen(url)).response.status).toBe(503)
  })

  it('counts clients and what they got', async () => {
    const { ac, feedUrl: url, emitMany } = await openSse()
    const streams = [await listen(url), await listen(url)]
    for (const stream of streams) await stream.placed()
    await emitMany(3)
    for (const stream of streams) await stream.sees('event-3')
    const metrics = await ac.metrics()
    expect(metrics).toContain('aftercommit_live_clients{transport="sse"} 2')
    expect(metrics).toContain('aftercommit_live_sent_total{transport="sse"} 6')
  })
})
