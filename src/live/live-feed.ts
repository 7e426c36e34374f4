/**
 * The one feed of a process. It reads what the tailer has at hand, once, and offers every page to all readers that have
 * caught up; those who catch up fetch pages of their own (feed-reader.ts). Without readers it only waits.
 *
 *   history forked   it goes back to where both histories agree; readers beyond are told to load anew
 *   many clients     what comes within a few milliseconds goes out together: it is the writes to sockets that cost
 */
import { setMaxListeners } from 'node:events'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { AftercommitError } from '../errors.ts'
import { type AnyEvent, Follower, type Tailer } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { createLoop, type Health, type LoopContext, type Registry } from '../runtime/index.ts'
import type { Feed, FeedItem, FeedRequest } from './feed.ts'
import { createToItem, type ItemParts } from './feed-items.ts'
import { type OfferedPage, Reader, type ReaderHost } from './feed-reader.ts'
import type { Filter } from './filter.ts'
import { createFeedMetrics } from './metrics.ts'
import { createReplay } from './replay.ts'
import { revokedBy } from './revocation.ts'

export interface FeedParts extends ItemParts {
  readonly database: Database
  readonly tailer: Tailer
  readonly metrics: Registry
  readonly health: Health
  /** Begins to follow the log if nobody does. */
  readonly ensureTailer: () => Promise<void>
}

/** Small, so that a burst reaches sockets page by page and they can drain in between. */
const PAGE = 100
/** At most so long is waited for more, and so much per client. */
const COALESCE_MS = { most: 20, perClient: 0.02 }

export function createFeed(parts: FeedParts): Feed & { stop(): Promise<void> } {
  const { tailer, clock, logger, metrics, health } = parts
  const readers = new Set<Reader>()
  const toItem = createToItem(parts)
  const replay = createReplay(parts)
  const counts = createFeedMetrics(metrics, () => countClients(readers))
  const stopping = new AbortController()
  // Every client listens to it.
  setMaxListeners(0, stopping.signal)
  let following: Promise<void> | undefined
  const follower = new Follower(tailer)
  /** Where the feed stands; undefined without readers. */
  let position: bigint | undefined
  let offeredAt = 0

  const loop = createLoop({ name: 'live feeds', clock, logger, metrics, health, run })

  async function run(context: LoopContext): Promise<void> {
    for (;;) {
      if (readers.size === 0 || tailer.epoch === 0) {
        if (readers.size === 0) position = undefined
        await context.wait(readers.size === 0 ? 60_000 : 100)
        continue
      }
      position ??= head()
      if (follower.hasLostPlace) await enterEpoch(position)
      else if (follower.hasMore(position)) await offerNext(position, context)
      else await follower.idle(position, { wake: () => loop.wake(), wait: () => context.wait(60_000) })
      context.beat()
    }
  }

  function head(): bigint {
    follower.enterEpoch()
    return tailer.frontier
  }

  async function offerNext(after: bigint, context: LoopContext): Promise<void> {
    const readyAt = offeredAt + Math.min(COALESCE_MS.most, readers.size * COALESCE_MS.perClient)
    const waitMs = readyAt - clock.monotonic()
    if (waitMs >= 1) await clock.sleep(waitMs, context.signal)
    const read = await follower.read(after, PAGE)
    if (read === undefined) return
    const { events, upTo } = read
    for (const event of events) heed(event)
    const page = toOffered(after, upTo, events)
    // In one go with moving on: a reader that joins meanwhile would stand neither before nor behind the page.
    for (const reader of readers) reader.offer(page)
    position = upTo
    if (upTo === tailer.frontier) offeredAt = clock.monotonic()
    await yieldTurn()
  }

  function heed(event: AnyEvent): void {
    const revoked = revokedBy(event)
    if (revoked !== undefined) for (const reader of readers) reader.heed(event.position, revoked)
  }

  function toOffered(after: bigint, upTo: bigint, events: AnyEvent[]): OfferedPage {
    const made = new Map<string, readonly FeedItem[]>()
    return {
      after,
      upTo,
      events,
      matched(filter) {
        const known = made.get(filter.key)
        if (known !== undefined) return known
        const items = match(events, filter)
        made.set(filter.key, items)
        return items
      },
    }
  }

  function match(events: readonly AnyEvent[], filter: Filter): FeedItem[] {
    const { epoch } = host.standing
    return events.filter((event) => filter.matches(event)).map((event) => toItem(event, epoch))
  }

  async function enterEpoch(from: bigint): Promise<void> {
    const epoch = tailer.epoch
    const { shared = from } = await replay.facts(follower.epoch)
    if (tailer.epoch !== epoch) return
    follower.enterEpoch()
    position = shared < from ? shared : from
    for (const reader of readers) reader.enterEpoch(shared)
  }

  const host: ReaderHost = {
    clock,
    get standing() {
      position ??= head()
      return { epoch: follower.epoch, position }
    },
    ready,
    remove: (reader) => void readers.delete(reader),
    match,
    readPage: replay.page,
    readFacts: replay.facts,
    count: (what, transport, by) => counts.of(transport)[what].inc(by),
  }

  /** Following the log asks the database, so it is done once and not for every client. */
  function ready(): Promise<void> {
    if (stopping.signal.aborted) {
      return Promise.reject(
        new AftercommitError('STOPPED', 'This instance was stopped, so it has no live feed any more.'),
      )
    }
    following ??= parts
      .ensureTailer()
      .then(() => loop.start())
      .catch((error) => {
        following = undefined
        throw error
      })
    return following
  }

  return {
    stopping: stopping.signal,
    async stand() {
      await ready()
      return tailer.frontier
    },
    open(request: FeedRequest) {
      const reader = new Reader(host, request)
      if (stopping.signal.aborted) reader.close()
      if (!reader.ended.aborted) readers.add(reader)
      loop.wake()
      return reader
    },
    async stop() {
      stopping.abort()
      for (const reader of readers) reader.close()
      await loop.stop()
    },
  }
}

function countClients(readers: ReadonlySet<Reader>): Map<string, number> {
  const clients = new Map<string, number>()
  for (const { request } of readers) clients.set(request.transport, (clients.get(request.transport) ?? 0) + 1)
  return clients
}
