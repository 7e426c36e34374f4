/**
 * From the log to the broadcaster. Without subscribers it only waits: nothing is read for nobody. A subscriber hears what
 * becomes final after it subscribed.
 */
import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, Follower, liftEvent, type Tailer } from '../log/index.ts'
import { createLoop, createThrottledLog, type PartOptions, type Service } from '../runtime/index.ts'
import { type Broadcaster, createBroadcaster, type OverflowPolicy } from './broadcaster.ts'
import { type SystemEvent, toSystemEvent } from './system-event.ts'

export interface FeedParts extends PartOptions {
  readonly tailer: Tailer
  readonly definitions: EventDefinitions | undefined
  readonly ring: number
  readonly overflow: () => OverflowPolicy
}

/** At most half a ring at once, so that whoever keeps up never misses one. */
const PAGE = 500

export function createBroadcastFeed(parts: FeedParts): { broadcaster: Broadcaster<SystemEvent>; service: Service } {
  const { tailer, clock, logger, metrics, health, ring, overflow } = parts
  const dropped = metrics.counter({
    name: 'aftercommit_overflow_total',
    help: 'Events that slow subscribers of the broadcaster were told they had missed. Nothing durable is ever dropped.',
    labels: ['policy'],
  })
  for (const policy of ['drop', 'drop_oldest']) dropped.labels({ policy }).inc(0)
  const logRepeatedly = createThrottledLog({ logger, clock })
  const most = Math.max(1, Math.min(PAGE, Math.floor(ring / 2)))
  const follower = new Follower(tailer)
  /** Where the feed stands; undefined without subscribers. */
  let position: bigint | undefined

  const broadcaster = createBroadcaster<SystemEvent>({
    ring,
    overflow,
    onMissed(count) {
      const policy = overflow() === 'drop' ? 'drop' : 'drop_oldest'
      dropped.labels({ policy }).inc(count)
      const fields = { code: 'OB014', missed: count }
      logRepeatedly(
        'warn',
        'overflow',
        fields,
        'a subscriber of the broadcaster was too slow and was told what it missed',
      )
    },
    onSubscribe() {
      if (loop.state === 'running' || loop.state === 'restarting') position ??= head()
      loop.wake()
    },
  })
  const loop = createLoop({
    name: 'broadcaster',
    clock,
    logger,
    metrics,
    health,
    async run(context) {
      for (;;) {
        if (broadcaster.subscriberCount === 0) {
          position = undefined
          await context.wait(60_000)
          continue
        }
        // In another epoch a place means nothing: subscribers keep no position, so they go on with new events.
        if (position === undefined || follower.hasLostPlace) position = head()
        if (!follower.hasMore(position)) {
          await follower.idle(position, { wake: () => loop.wake(), wait: () => context.wait(60_000) })
          continue
        }
        const page = await follower.read(position, most)
        context.beat()
        if (page === undefined) continue
        for (const event of page.events) send(event)
        position = page.upTo
        // Subscribers run between pages, or the second page would push out what they had no chance to read.
        await yieldTurn()
      }
    },
  })

  function head(): bigint {
    follower.enterEpoch()
    return tailer.frontier
  }

  function send(event: AnyEvent): void {
    try {
      broadcaster.send(toSystemEvent(liftEvent(parts.definitions, event)))
    } catch (error) {
      const fields = { event_id: event.id, event_type: event.type, err: error }
      logRepeatedly('warn', event.type, fields, 'an event cannot be read by this release and was not broadcast')
    }
  }

  return { broadcaster, service: loop }
}
