/** GraphQL subscriptions with the clients that people use, over WebSockets and server-sent events. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printSchema } from 'graphql'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import {
  ALL,
  clientsOf,
  openGraphql,
  type Served,
  START,
  serveGraphql,
  sseClient,
  subscribe,
  wsClient,
} from './graphql-support.ts'

const TRANSPORTS = [
  { transport: 'graphql-ws', client: ({ socketAddress }: Served, words?: object) => wsClient(socketAddress, words) },
  { transport: 'graphql-sse', client: ({ address }: Served, words?: object) => sseClient(address, words) },
] as const

describe.each(TRANSPORTS)('over $transport', ({ transport, client }) => {
  it('a client gets what it asked for and nothing else', async () => {
    const served = await openGraphql()
    const { emit } = served
    const one = client(served)
    const from = { from: START }
    const created = subscribe(
      one,
      'subscription ($from: String) { resourceCreated(type: "lamp", from: $from) { id } }',
      from,
    )
    const updated = subscribe(
      client(served),
      'subscription ($from: String) { resourceUpdated(type: "lamp", id: "7", from: $from) { id } }',
      from,
    )
    const deleted = subscribe(client(served), `subscription { resourceDeleted(type: "lamp", from: "${START}") { id } }`)
    const changed = subscribe(
      client(served),
      `subscription { resourceChanged(type: "lamp", kinds: [created, deleted], from: "${START}") { id } }`,
    )
    const anyChange = subscribe(
      client(served),
      `subscription { resourceChanged(type: "lamp", from: "${START}") { id } }`,
    )
    const all = subscribe(client(served), `subscription { events(types: ["lamp.*"], from: "${START}") { id } }`)
    await emit('c7', { type: 'lamp.created', key: '7' })
    await emit('u7', { type: 'lamp.updated', key: '7' })
    await emit('u8', { type: 'lamp.updated', key: '8' })
    await emit('lit', { type: 'lamp.lit', key: '7' })
    await emit('door', { type: 'door.created' })
    await emit('d7', { type: 'lamp.deleted', key: '7' })
    await all.sees('d7')
    await deleted.sees('d7')
    await changed.sees('d7')
    await anyChange.sees('d7')
    await emit('end', { type: 'lamp.created', key: '9' })
    await created.sees('end')
    await emit('last', { type: 'lamp.updated', key: '7' })
    await updated.sees('last')
    expect(created.ids).toEqual(['c7', 'end'])
    expect(updated.ids).toEqual(['u7', 'last'])
    expect(deleted.ids).toEqual(['d7'])
    expect(changed.ids.slice(0, 2)).toEqual(['c7', 'd7'])
    expect(anyChange.ids.slice(0, 4)).toEqual(['c7', 'u7', 'u8', 'd7'])
    expect(all.ids.slice(0, 5)).toEqual(['c7', 'u7', 'u8', 'lit', 'd7'])
  })

  it('an event has everything that its fields promise', async () => {
    const served = await openGraphql()
    const { position } = await served.ac.transaction((tx) =>
      tx.emit('lamp.updated', {
        id: 'e1',
        aggregate: { type: 'lamp', id: '7' },
        payload: { watts: 9, serial: 12345678901234567890n, ['__proto__']: 1 },
        changes: { watts: { old: 8, new: 9 } },
        previous: { watts: 8 },
        tenant: 'north',
        occurredAt: new Date('2026-03-01T12:00:00Z'),
      }),
    )
    const fields =
      'id type kind position token aggregateType aggregateId version tenant occurredAt recordedAt payload changes previous'
    const one = subscribe(client(served), `subscription { events(from: "${START}") { ${fields} } }`)
    await one.sees('e1')
    expect(one.events[0]).toEqual({
      id: 'e1',
      type: 'lamp.updated',
      kind: 'updated',
      position: String(position),
      token: expect.stringMatching(new RegExp(`^\\d+\\.${position}$`)),
      aggregateType: 'lamp',
      aggregateId: '7',
      version: null,
      tenant: 'north',
      occurredAt: '2026-03-01T12:00:00.000Z',
      recordedAt: expect.stringMatching(/Z$/),
      payload: JSON.parse('{"watts": 9, "serial": "12345678901234567890", "__proto__": 1}'),
      changes: { watts: { old: 8, new: 9 } },
      previous: { watts: 8 },
    })
  })

  it('a client that comes back gets what it missed, on any instance, once', async () => {
    const first = await openGraphql()
    const second = await serveGraphql(first.another())
    await first.emitMany(300)
    const before = subscribe(client(first), ALL)
    await before.sees('event-100')
    before.stop()
    const { token } = before.events[99]!
    await first.emitMany(300, { prefix: 'later-' })
    const after = subscribe(client(second), 'subscription ($from: String) { events(from: $from) { id } }', {
      from: token,
    })
    await after.sees('later-300')
    await first.emit('live')
    await after.sees('live')
    const later = Array.from({ length: 300 }, (_, n) => `later-${n + 1}`)
    const rest = Array.from({ length: 200 }, (_, n) => `event-${n + 101}`)
    expect(after.ids).toEqual([...rest, ...later, 'live'])
  })

  it('an event of one instance reaches the clients of another', async () => {
    const first = await openGraphql()
    const second = await serveGraphql(first.another())
    const there = subscribe(client(second), 'subscription { events { id } }')
    await eventually(async () => {
      await first.emit(`probe-${Math.random()}`)
      return there.ids.length > 0
    })
    await first.emit('one')
    await there.sees('one')
  })

  it('nobody is served who was not authorised', async () => {
    const served = await openGraphql({
      authorize: (request) => (request.headers.get('authorization') === 'Bearer ada' ? 'ada' : null),
    })
    const stranger = subscribe(client(served, { user: 'eve' }), ALL)
    const error = await stranger.ended
    expect(error).toBeDefined()
    expect(String((error as { code?: number }).code ?? (error as { response?: Response }).response?.status)).toMatch(
      /4403|401/,
    )
    expect(await clientsOf(served.ac, transport)).toBe(0)
    await served.emit('e1')
    const known = subscribe(client(served), ALL)
    await known.sees('e1')
  })

  it('each client sees only what it may, of its tenant', async () => {
    const served = await openGraphql({
      tenantOf: (user) => (user === 'eve' ? null : 'north'),
      allows: async (user, { id }) => id.startsWith(user) || id === 'end',
      on: ['lamp.*'],
    })
    const { emit } = served
    await emit('ada1', { tenant: 'north' })
    await emit('bob1', { tenant: 'north' })
    await emit('ada2', { tenant: 'south' })
    await emit('ada3', { type: 'door.opened', tenant: 'north' })
    await emit('end', { tenant: 'north' })
    const [ada, bob, eve] = ['ada', 'bob', 'eve'].map((user) => subscribe(client(served, { user }), ALL))
    await ada!.sees('end')
    await bob!.sees('end')
    expect(ada!.ids).toEqual(['ada1', 'end'])
    expect(bob!.ids).toEqual(['bob1', 'end'])
    expect(await eve!.ended).toBeDefined()
  })

  it('a client that is revoked on one instance is told on another, and ended', async () => {
    const first = await openGraphql()
    const second = await serveGraphql(first.another(), {
      identityOf: (user) => ({ user, session: `session-of-${user}` }),
    })
    const [ada, bob] = ['ada', 'bob'].map((user) => subscribe(client(second, { user }), ALL))
    await first.emit('e1')
    await Promise.all([ada!.sees('e1'), bob!.sees('e1')])
    await first.ac.emitAuth({ type: 'session_revoked', sessionId: 'session-of-ada' })
    await ada!.ended
    expect(ada!.errors).toEqual([expect.objectContaining({ extensions: { code: 'REVOKED' } })])
    await first.emit('e2')
    await bob!.sees('e2')
    expect(ada!.ids).toEqual(['e1'])
  })

  it('a place that means nothing is told with where to go on', async () => {
    const served = await openGraphql()
    await served.emit('e1')
    const lost = subscribe(client(served), 'subscription { events(from: "1.999999") { id } }')
    await lost.ended
    const [error] = lost.errors
    expect(error!.extensions).toEqual({ code: 'RESYNC', token: expect.stringMatching(/^\d+\.\d+$/) })
    await served.emit('e2')
    const again = subscribe(client(served), `subscription { events(from: "${error!.extensions!.token}") { id } }`)
    await again.sees('e2')
    expect(again.ids).toEqual(['e2'])
  })

  it('a client hears that the instance stops, and where to go on', async () => {
    const served = await openGraphql()
    const one = subscribe(client(served), ALL)
    await served.emit('e1')
    await one.sees('e1')
    await served.ac.stop()
    await one.ended
    expect(one.errors).toEqual([
      expect.objectContaining({ extensions: { code: 'STOPPED', token: one.events[0]!.token } }),
    ])
  })

  it('a failure of `allows` is told, logged, and shows nothing of its own', async () => {
    const { logger, lines } = collectingLogger()
    const allows = () => Promise.reject(new Error('rights are kept at db.internal'))
    const served = await openGraphql({ allows }, { logger })
    await served.emit('e1')
    const one = subscribe(client(served), ALL)
    await one.ended
    expect(one.errors[0]!.extensions).toMatchObject({ code: 'FAILED' })
    expect(JSON.stringify(one.errors)).not.toContain('internal')
    expect(lines).toContain('error a GraphQL subscription was cut off; its client may resume')
  })

  it.each([
    ['a token that is none', 'subscription { events(from: "yesterday") { id } }', 'BAD_OPTION'],
    ['a pattern that is none', 'subscription { events(types: ["Lamp!"]) { id } }', 'BAD_PATTERN'],
    ['no pattern at all', 'subscription { events(types: []) { id } }', 'BAD_PATTERN'],
    [
      'more patterns than anybody needs',
      `subscription { events(types: [${'"a",'.repeat(51)}]) { id } }`,
      'BAD_PATTERN',
    ],
  ])('%s is a mistake of the client, with a code', async (_, query, code) => {
    const served = await openGraphql()
    const one = subscribe(client(served), query)
    const thrown = await one.ended
    const told = [...one.errors, ...(Array.isArray(thrown) ? thrown : [])]
    expect(told.map(({ extensions }) => extensions?.code)).toEqual([code])
  })

  it.each([
    ['what the schema does not have', 'subscription { everything { id } }'],
    ['a mutation', 'mutation { emit }'],
    ['two subscriptions in one', `subscription { events { id } resourceCreated(type: "a") { id } }`],
    ['no GraphQL', 'select * from events'],
    ['an operation that is too long', `query { version ${'#'.repeat(11_000)}\n }`],
    ['an operation of too many words', `query { ${'version '.repeat(1_100)} }`],
    ['two operations and no choice', 'query a { version } query b { version }'],
  ])('%s is refused, and the connection goes on', async (_, query) => {
    const served = await openGraphql()
    const one = client(served)
    const refused = subscribe(one, query)
    const thrown = await refused.ended
    expect([...refused.errors, ...(Array.isArray(thrown) ? thrown : [])]).not.toHaveLength(0)
    const fine = subscribe(one, '{ version }')
    await fine.ended
    expect(fine.errors).toEqual([])
  })

  it('the schema can be asked for, unless that is switched off', async () => {
    const query = '{ __schema { subscriptionType { name } } }'
    const open = await openGraphql()
    const asked = subscribe(client(open), query)
    await asked.ended
    expect(asked.events).toEqual([{ subscriptionType: { name: 'Subscription' } }])
    const closed = subscribe(client(await serveGraphql(open.ac, { introspection: false })), query)
    const thrown = await closed.ended
    expect(JSON.stringify([closed.errors, thrown])).toContain('introspection')
  })

  it('clients that leave are forgotten', async () => {
    const served = await openGraphql()
    const all = Array.from({ length: 5 }, () => subscribe(client(served), ALL))
    await served.emit('e1')
    await Promise.all(all.map((one) => one.sees('e1')))
    expect(await clientsOf(served.ac, transport)).toBe(5)
    for (const one of all) one.stop()
    await eventually(async () => (await clientsOf(served.ac, transport)) === 0)
  })
})

describe('ac.live.graphql', () => {
  it('is refused without `authorize`, and with options that mean nothing', async () => {
    const { ac } = await openGraphql()
    await expect(ac.live.graphql({} as never)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    const authorize = () => 'anybody'
    await expect(ac.live.graphql({ authorize, maxSubscriptions: 0 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(ac.live.graphql({ authorize, maxQuery: 'long' })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(ac.live.graphql({ authorize, on: ['Lamp!'] })).rejects.toMatchObject({ code: 'BAD_PATTERN' })
  })

  it('gives the schema it serves', async () => {
    const { graphql } = await openGraphql()
    expect(printSchema(graphql.schema as Parameters<typeof printSchema>[0])).toContain('resourceChanged(')
  })

  it('is disabled by the file that was loaded, unless the program says otherwise', async () => {
    const { ac } = await openSubscriptions()
    const folder = mkdtempSync(join(tmpdir(), 'ac-graphql-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'aftercommit.toml'), '[graphql]\nsubscriptions_enabled = false\n')
    await ac.observers.loadFile(join(folder, 'aftercommit.toml'))
    const authorize = () => 'ada'
    expect((await ac.live.graphql({ authorize })).schema).toBeNull()
    expect((await ac.live.graphql({ authorize, enabled: true })).schema).not.toBeNull()
  })

  it('is as if it were not there when it is disabled', async () => {
    const served = await openGraphql({ enabled: () => false })
    expect((await fetch(served.address, { method: 'POST' })).status).toBe(404)
    expect(served.server.listenerCount('upgrade')).toBe(0)
    expect(served.graphql.schema).toBeNull()
  })
})
