/** One reader beside a feed that is made up. */
import { expect, it, onTestFinished } from 'vitest'
import type { FeedItem, FeedRequest, ResumeToken } from '../../src/live/feed.ts'
import { Reader, type ReaderHost } from '../../src/live/feed-reader.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'

function open(request: Partial<FeedRequest>, host: Partial<ReaderHost>): Reader {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const standing: ResumeToken = { epoch: 1, position: 100n }
  const facts = { epoch: 1, keptFrom: 1n, last: 100n, shared: undefined }
  const whole: ReaderHost = {
    clock: systemClock,
    standing,
    ready: async () => {},
    remove: () => {},
    match: () => [],
    readPage: async (_reader, after, _limit, _filter, window) => ({ events: [], upTo: after, window }),
    readFacts: async () => facts,
    count: () => {},
    ...host,
  }
  const { signal } = leaving
  return new Reader(whole, { transport: 'test', types: ['*'], from: undefined, principal: 'ada', signal, ...request })
}

it('a client that is cut off in a long stretch without an event for it need not begin again', async () => {
  const reader = open(
    { from: { epoch: 1, position: 0n } },
    {
      readPage: (_reader, after, _limit, _filter, window) =>
        after < 20n ? Promise.resolve({ events: [], upTo: after + 10n, window }) : new Promise(() => {}),
    },
  )
  const batches = reader[Symbol.asyncIterator]()
  expect((await batches.next()).value).toEqual([])
  void batches.next()
  await eventually(() => reader.token === '1.20')
})

it('a client that has taken everything gets the next page, however large that is', async () => {
  const reader = open({ maxBuffered: { events: 2 } }, {})
  const batches = reader[Symbol.asyncIterator]()
  await batches.next()
  const items = ['1.101', '1.102', '1.103'].map((token): FeedItem => ({ kind: 'resync', token }))
  const next = batches.next()
  await Promise.resolve()
  reader.offer({ after: 100n, upTo: 103n, events: [], matched: () => items })
  expect((await next).value).toEqual(items)
  // One that does not take it is slow.
  reader.offer({ after: 103n, upTo: 106n, events: [], matched: () => items })
  reader.offer({ after: 106n, upTo: 109n, events: [], matched: () => items })
  expect((await batches.next()).value).toEqual([{ kind: 'lagged', from: '1.103' }])
})
