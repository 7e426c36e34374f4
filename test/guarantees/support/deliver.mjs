// A process that works on deliveries, assembled as an instance does it, and writes every call into a file that is not the
// product's: `begin` before its work, `end` after it. Usage: node deliver.mjs <json>; see DelivererOptions in deliverers.ts.
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createDelivering } from '../../../dist/delivery/index.js'
import { AftercommitEvent } from '../../../dist/events/index.js'
import { createFollowing } from '../../../dist/log/index.js'
import { createDatabase } from '../../../dist/postgres/index.js'
import { LEASES_CHANGED, LeaseKeeper } from '../../../dist/processes/index.js'
import { createHealth, createRegistry, parseRetry, systemClock } from '../../../dist/runtime/index.js'

const { url, ledger, works, concurrency = 10, drainMs = 10_000, words = {} } = JSON.parse(process.argv[2])

process.on('unhandledRejection', (error) => console.log(`UNHANDLED ${error?.stack}`))

const say = (level) => (fields, message) => console.log(`${level} ${message} ${fields.err?.message ?? ''}`)
const logger = { debug: () => {}, info: say('info'), warn: say('warn'), error: say('error'), child: () => logger }

const parts = {
  database: createDatabase({ database: url, connectTimeoutMs: 5_000, logger }),
  clock: systemClock,
  logger,
  metrics: createRegistry({ clock: systemClock, logger }),
  health: createHealth({ clock: systemClock }),
}
const info = { process: randomUUID(), host: 'deliverer', pid: process.pid, version: '0', configHash: '0', ...words }
const following = createFollowing({
  ...parts,
  info,
  neededFrom: async () => 2n ** 63n - 1n,
  onWord: (word) => (word === LEASES_CHANGED ? processLease.heardOfChange() : delivering.nudged()),
  onRing: () => delivering.wake(),
  onLock() {
    processLease.look()
    delivering.nudged()
  },
  onSchemaTooNew: () => {},
})
const processLease = new LeaseKeeper({ ...parts, info, lock: () => following.lock() })
const delivering = createDelivering({
  ...parts,
  process: info.process,
  processLease,
  willHear: () => following.tailer.status().state === 'armed',
  storeStacks: false,
  concurrency,
  drainMs: () => drainMs,
})

for (const { name, retry = {}, behaviour = {} } of works) {
  delivering.register({
    kind: 'effect',
    name,
    retry: parseRetry({ maxAttempts: 2, initialDelay: '10ms', maxDelay: '20ms', ...retry }),
    timeoutMs: 60_000,
    run: (delivery) => deliver(behaviour, delivery),
    toEvent: ({ id, payload, owner }) => eventOf(String(id), payload, owner),
  })
}

async function deliver({ workMs = 0, holdsUntil, holds = [], downWhile, dies }, { id, name, payload, attempt }) {
  const write = (what) => {
    const entry = {
      what,
      name,
      id: String(id),
      n: payload.n,
      payload,
      attempt,
      pid: process.pid,
      at: performance.timeOrigin + performance.now(),
    }
    appendFileSync(ledger, `${JSON.stringify(entry)}\n`)
  }
  write('begin')
  if (dies?.on === payload.n && dies.when === 'begin') die(dies)
  if (workMs > 0) await pause(workMs)
  if (holds.includes(payload.n)) while (!existsSync(holdsUntil)) await pause(10)
  if (downWhile && existsSync(downWhile)) {
    write('refused')
    throw Object.assign(new Error('503'), { transient: true })
  }
  write('end')
  if (dies?.on === payload.n && dies.when === 'end') die(dies)
}

/** So often as it was told, counted in the ledger: this process remembers nothing of those before it. */
function die({ on, when, how, times = Number.POSITIVE_INFINITY }) {
  const lines = readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
  const before = lines.map((line) => JSON.parse(line)).filter((line) => line.what === when && line.n === on)
  if (before.length > times) return
  if (how === 'exit') process.exit(1)
  process.kill(process.pid, 'SIGKILL')
}

function eventOf(id, payload, owner) {
  const metadata = {
    correlationId: null,
    causationId: null,
    userId: null,
    traceparent: null,
    schemaVersion: 1,
    depth: 0,
  }
  return new AftercommitEvent({
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
    metadata,
    occurredAt: new Date(),
    recordedAt: new Date(),
  })
}

process.on('SIGTERM', async () => {
  let code = 0
  await delivering.service.stop().catch(() => {
    code = 1
  })
  await processLease.stop()
  await following.service.stop()
  await parts.database.close(1_000)
  console.log('stopped')
  process.exit(code)
})

await following.service.start()
await processLease.start()
await delivering.service.start()
console.log(`started ${info.process}`)
