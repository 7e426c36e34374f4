/** Workers on a database of their own, each a process as far as the database can tell; ended with the test. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { createDelivering, type Delivering, type DeliveryOptions, type Work } from '../../../src/delivery/index.ts'
import { AftercommitEvent } from '../../../src/events/index.ts'
import { createDatabase, type Database } from '../../../src/postgres/index.ts'
import { createHealth, createRegistry, parseRetry, type Registry, systemClock } from '../../../src/runtime/index.ts'
import { connect, type ServerKind, testDatabase, usualServer } from '../../support/database.ts'
import { collectingLogger } from '../../support/logger.ts'

export interface OpenWorker extends Delivering {
  readonly process: string
  readonly database: Database
  readonly metrics: Registry
  readonly lines: readonly string[]
}

export interface OpenDelivering {
  readonly url: string
  readonly sql: pg.Client
  worker(options?: Partial<DeliveryOptions>): Promise<OpenWorker>
}

/** Without a bell: workers look for new work by themselves. */
export async function openDelivering({ major = usualServer() }: { major?: ServerKind } = {}): Promise<OpenDelivering> {
  const { url } = await testDatabase({ major, migrated: true })
  return {
    url,
    sql: await connect(url),
    worker: (options = {}) => openWorker(url, options),
  }
}

/** A worker on a database that is there already. */
export async function openWorker(url: string, options: Partial<DeliveryOptions> = {}): Promise<OpenWorker> {
  const { logger, lines } = collectingLogger()
  const database = createDatabase({ database: url, connectTimeoutMs: 5_000, logger })
  const metrics = createRegistry({ clock: systemClock, logger })
  const process = randomUUID()
  // Nobody holds the lock of this process: it must not count as gone for that.
  await database.query(
    `insert into aftercommit.processes (process, host, pid, version, config_hash, locked)
     values ($1::text, 'test', 1, '0', '0', false)`,
    [process],
  )
  const delivering = createDelivering({
    database,
    clock: systemClock,
    logger: database.logger,
    metrics,
    health: createHealth({ clock: systemClock }),
    process,
    lock: () => ({ holds: false, possible: false, gained: 0, lacks: false }),
    willHear: () => false,
    storeStacks: false,
    concurrency: 50,
    drainMs: () => 10_000,
    ...options,
  })
  onTestFinished(async () => {
    await delivering.service.stop().catch(() => {})
    await database.close(1_000)
  })
  await delivering.service.start()
  return Object.defineProperties(delivering, {
    process: { value: process },
    database: { value: database },
    metrics: { value: metrics },
    lines: { value: lines },
  }) as OpenWorker
}

/** Work named `mail` that is given up after three quick attempts. */
export function work(run: Work['run'], words: Partial<Work> = {}): Work {
  return {
    kind: 'effect',
    name: 'mail',
    retry: parseRetry({ maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' }),
    timeoutMs: 30_000,
    run,
    toEvent: ({ id, payload, owner }) =>
      new AftercommitEvent({
        id: `delivery-${id}`,
        type: 'mail.sent',
        position: 0n,
        aggregateType: 'mail',
        aggregateId: owner,
        version: null,
        payload,
        changes: null,
        previous: null,
        tenant: null,
        metadata: {
          correlationId: null,
          causationId: null,
          userId: null,
          traceparent: null,
          schemaVersion: 1,
          depth: 0,
        },
        occurredAt: new Date(),
        recordedAt: new Date(),
      }),
    ...words,
  }
}

/** `n` deliveries for that work, numbered in their payload. */
export function mails(n: number, words: object = {}) {
  return Array.from({ length: n }, (_, i) => ({
    kind: 'effect' as const,
    name: 'mail',
    owner: 'shop',
    payload: { n: i + 1 },
    ...words,
  }))
}
