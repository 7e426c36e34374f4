/** What can be said of GraphQL without a server: missing packages, events as the schema shows them, the end of a source. */
import { type FragmentDefinitionNode, getIntrospectionQuery, type OperationDefinitionNode, parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { AftercommitEvent, ExactNumber } from '../../src/events/index.ts'
import type { Feed, FeedItem, FeedRequest } from '../../src/live/feed.ts'
import type { Connection } from '../../src/live/graphql-connection.ts'
import { answerSize, sizeOf, toGraphqlEvent } from '../../src/live/graphql-event.ts'
import { copiesOf, operationProblem } from '../../src/live/graphql-limits.ts'
import { load } from '../../src/live/graphql-peers.ts'
import { Source } from '../../src/live/graphql-source.ts'

describe('a package that GraphQL needs', () => {
  const missing = (name: string) => {
    const error = new Error(`Cannot find package '${name}' imported from /app/node_modules/aftercommit/dist/x.js`)
    return () => Promise.reject(Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' }))
  }

  it('is asked for by name when it is not installed', async () => {
    const loading = load('graphql-ws', 'GraphQL over WebSockets', missing('graphql-ws'))
    await expect(loading).rejects.toMatchObject({
      code: 'PEER_MISSING',
      message: expect.stringContaining('npm install graphql-ws'),
    })
  })

  it('is not blamed for what it lacks itself, nor for its own mistakes', async () => {
    await expect(load('graphql-ws', 'it', missing('graphql'))).rejects.toMatchObject({ code: 'ERR_MODULE_NOT_FOUND' })
    await expect(load('graphql-ws', 'it', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  })
})

function item(id: string, payload: unknown = {}): Extract<FeedItem, { kind: 'event' }> {
  const at = new Date('2026-03-01T12:00:00Z')
  const none = { aggregateType: null, aggregateId: null, version: null, tenant: null, changes: null, previous: null }
  const cause = { correlationId: null, causationId: null, traceparent: null, schemaVersion: 1, depth: 0 }
  const metadata = { ...cause, userId: 'ada' }
  const fields = { ...none, id, type: 'lamp.lit', position: 7n, payload, metadata, occurredAt: at, recordedAt: at }
  return { kind: 'event', event: new AftercommitEvent(fields), token: '1.7' }
}

describe('an event of the schema', () => {
  it('has numbers that a double does not hold as text, however deep', () => {
    const exact = new ExactNumber('0.10000000000000000001')
    expect(toGraphqlEvent(item('e1', { a: [{ b: 12345678901234567890n }, exact], c: 1 }))).toMatchObject({
      payload: { a: [{ b: '12345678901234567890' }, '0.10000000000000000001'], c: 1 },
    })
  })

  it('is made once for all clients, and tells nothing of users', () => {
    const one = item('e1', { text: 'x'.repeat(100) })
    expect(toGraphqlEvent(one)).toBe(toGraphqlEvent(one))
    expect(JSON.stringify(toGraphqlEvent(one))).not.toContain('ada')
    expect(sizeOf(one)).toBe(JSON.stringify(toGraphqlEvent(one)).length)
  })
})

describe('an operation', () => {
  const problemOf = (query: string) => operationProblem(parse(query))
  const aliases = (n: number) => Array.from({ length: n }, (_, at) => `a${at}: payload`).join(' ')

  it('has few aliases, in itself and in all of its fragments', () => {
    expect(problemOf(`subscription { events { ${aliases(10)} } }`)).toBeUndefined()
    expect(problemOf(`subscription { events { ${aliases(11)} } }`)).toContain('at most 10 aliases')
    const fragments = `fragment F on Event { ${aliases(6)} } fragment G on Event { b: payload ...F ${aliases(6)} }`
    expect(problemOf(`subscription { events { ...G } } ${fragments}`)).toContain('at most 10 aliases')
  })

  it('nests little, through fragments too, and as much as tools need to read the schema', () => {
    expect(problemOf(getIntrospectionQuery())).toBeUndefined()
    const deep = `{ a${' { a'.repeat(20)}${' }'.repeat(20)} }`
    expect(problemOf(deep)).toContain('at most 20 levels')
    const chain = Array.from({ length: 25 }, (_, at) => `fragment F${at} on Event { ${`...F${at + 1} `.repeat(9)} }`)
    expect(problemOf(`{ ...F0 } ${chain.join(' ')} fragment F25 on Event { id }`)).toContain('at most 20 levels')
  })

  it('makes an answer whose size is known before it is written', () => {
    const document = parse(
      'subscription { events { id a: payload ...F } } fragment F on Event { b: payload payload a: payload }',
    )
    const [operation, fragment] = document.definitions as [OperationDefinitionNode, FragmentDefinitionNode]
    const copies = copiesOf(operation, { F: fragment })
    expect(Object.fromEntries(copies)).toEqual({ id: 1, payload: 3 })
    const size = answerSize(item('e1', { text: 'x'.repeat(1_000) }), copies)
    expect(size).toBe('"e1"'.length + 3 * JSON.stringify({ text: 'x'.repeat(1_000) }).length)
  })
})

describe('a subscription with events at hand', () => {
  /** A feed that hands out three events at once, ends its reader, and then says `last`, or nothing. */
  function ending(last: FeedItem | undefined) {
    const ended = new AbortController()
    let closed = 0
    const feed = {
      open: (_: FeedRequest) => ({
        token: '1.9',
        ended: ended.signal,
        close: () => closed++,
        async *[Symbol.asyncIterator]() {
          yield []
          yield [item('e1'), item('e2'), item('e3')]
          if (last !== undefined) yield [last]
        },
      }),
    } as unknown as Feed
    const revoked: boolean[] = []
    const connection = {
      signal: new AbortController().signal,
      onRevoked: () => revoked.push(true),
    } as unknown as Connection
    const source = new Source(feed, connection, { types: ['*'], from: undefined, maxBuffered: undefined }, () => {})
    return { source, end: () => ended.abort(), revoked, closed: () => closed }
  }

  async function taken(source: Source): Promise<string[]> {
    const told: string[] = []
    for await (const one of source) told.push(one.kind === 'event' ? one.event.id : `${one.code} ${one.token}`)
    return told
  }

  it('gives the rest of them before it says that its client lagged, or that it stops', async () => {
    const lagged = ending({ kind: 'lagged', from: '1.8' })
    await lagged.source.next()
    lagged.end()
    expect(await taken(lagged.source)).toEqual(['e2', 'e3', 'LAGGED 1.8'])
    const stopped = ending(undefined)
    await stopped.source.next()
    stopped.end()
    expect(await taken(stopped.source)).toEqual(['e2', 'e3', 'STOPPED 1.9'])
  })

  it('gives nothing more of them to a client that was revoked', async () => {
    const { source, end, revoked } = ending({ kind: 'revoked' })
    await source.next()
    end()
    expect(await taken(source)).toEqual(['REVOKED undefined'])
    expect(revoked).toEqual([true])
  })

  it('says nothing to a client that has left', async () => {
    const { source, closed } = ending(undefined)
    await source.next()
    await source.return()
    expect(closed()).toBe(1)
    expect(await source.next()).toEqual({ done: true, value: undefined })
  })
})
