/** Workers on a database of their own, each a process as far as the database can tell; ended with the test. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { createDelivering, type Delivering, type DeliveryOptions, type Work } from '../../../src/delivery/index.ts'
import { AftercommitEvent } from '../../../src/events/index.ts'
import { createDatabase, type Database } from '../../../src/postgres/index.ts'
import { LeaseKeeper } from '../../../src/processes/index.ts'
import { createHealth, createRegistry, parseRetry, type Registry, systemClock } from '../../../src/runtime/index.ts'
import { connect, type ServerKind, testDatabase, usualServer } from '../../support/database.ts'
import { collectingLogger } from '../../support/logger.ts'

export interface OpenWorker extends Delivering {
  readonly process: string
  readonly processLease: LeaseKeeper
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
  const ground = {
    ...{ database, metrics, logger: database.logger, clock: systemClock },
    health: createHealth({ clock: systemClock }),
  }
  const processLease = new LeaseKeeper({
    ...ground,
    info: { process, host: 'test', pid: 1, version: '0', configHash: '0' },
    // No process holds a lock here, as behind a pooler.
    lock: () => ({ holds: false, possible: false, gained: 0, lacks: false, key: null }),
  })
  const delivering = createDelivering({
    ...ground,
    process,
    processLease,
    willHear: () => false,
    storeStacks: false,
    concurrency: 50,
    drainMs: () => 10_000,
    ...options,
  })
  const { service } = delivering
  const stop = async () => {
    try {
      await service.stop()
    } finally {
      await processLease.stop()
    }
  }
  onTestFinished(async () => {
    await stop().catch(() => {})
    await database.close(1_000)
  })
  await processLease.start()
  await service.start()
  return Object.defineProperties(delivering, {
    service: { value: { name: service.name, state: service.state, start: service.start, stop } },
    processLease: { value: processLease },
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
