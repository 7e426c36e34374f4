/** A log in a database of its own, and a reader that keeps what it was given. Both end with the test. */
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { createAftercommit } from '../../../src/aftercommit.ts'
import type { EventDefinitions } from '../../../src/events/index.ts'
import type { Aftercommit } from '../../../src/instance.ts'
import type { AnyEvent, StartPoint } from '../../../src/log/index.ts'
import type { AftercommitOptions } from '../../../src/options.ts'
import { connect, type ServerKind, testDatabase, usualServer } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

export interface OpenLog<D extends EventDefinitions = EventDefinitions> {
  readonly ac: Aftercommit<D>
  readonly url: string
  /** A plain session of a superuser, for what happens behind the library's back. */
  readonly sql: pg.Client
}

export const SERVERS = [{ major: 18 }, { major: 14 }] as const

export async function openLog<D extends EventDefinitions = EventDefinitions>({
  major = usualServer(),
  ...options
}: Omit<AftercommitOptions<D>, 'database'> & { major?: ServerKind } = {}): Promise<OpenLog<D>> {
  const { url } = await testDatabase({ major, migrated: true })
  const ac = instance<D>({ ...options, database: url })
  // The template has everything but what is stored for this instance.
  if (options.log !== undefined || options.events?.streams.length) await ac.migrate()
  return { ac, url, sql: await connect(url) }
}

export function instance<D extends EventDefinitions = EventDefinitions>(
  options: AftercommitOptions<D>,
): Aftercommit<D> {
  const ac = createAftercommit<D>(options)
  onTestFinished(() => ac.stop())
  return ac
}

export interface Follower {
  readonly events: readonly AnyEvent[]
  readonly positions: readonly bigint[]
  readonly ids: readonly string[]
  /** Resolves when the event with this id was given. */
  sees(id: string, deadline?: number): Promise<AnyEvent>
  /** How the reader ended; rejects with what it threw. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

export interface FollowOptions {
  readonly from?: StartPoint
  readonly on?: readonly string[]
  readonly tenant?: string
}

export function follow(log: Aftercommit['log'], { from = 'start', ...options }: FollowOptions = {}): Follower {
  const events: AnyEvent[] = []
  const ending = new AbortController()
  const ended = (async () => {
    for await (const event of log.tail({ from, ...options, signal: ending.signal })) events.push(event)
  })()
  ended.catch(() => {})
  const stop = async () => {
    ending.abort()
    await ended
  }
  onTestFinished(() => stop().catch(() => {}))
  return {
    events,
    get positions() {
      return events.map(({ position }) => position)
    },
    get ids() {
      return events.map(({ id }) => id)
    },
    sees: (id, deadline = 30_000) =>
      eventually(() => events.findLast((event) => event.id === id), { deadline, every: 2 }),
    ended,
    stop,
  }
}
