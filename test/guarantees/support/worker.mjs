// A process that runs one subscription and writes every call into a file that is not the product's: `begin` before
// its work, `end` after it. Usage: node worker.mjs <json>; see WorkerOptions in workers.ts.
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { createAftercommit } from 'aftercommit'

const { ledger, subscriptions, instance = {}, quiet = false } = JSON.parse(process.argv[2])

process.on('unhandledRejection', (error) => console.log(`UNHANDLED ${error?.stack}`))

const say = (level) => (fields, message) => console.log(`${level} ${message} ${JSON.stringify(fields)}`)
const logger = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error'), child: () => logger }

const ac = createAftercommit({ ...instance, ...(quiet ? {} : { logger }) })
for (const { behaviour = {}, batch = false, ...options } of subscriptions) {
  const handle = (event, context) => handleOne(options.id, behaviour, event, context)
  const handleBatch = async (events, context) => {
    for (const event of events) await handleOne(options.id, behaviour, event, context)
  }
  ac.subscribe({ ...options, ...(batch ? { handleBatch } : { handle }) })
}

async function handleOne(subscription, behaviour, event, context) {
  const { workMs = 0, cpuMs, holds, dies, fails = [], failFirst = 0, effects } = behaviour
  const { attempt, idempotencyKey } = context
  const write = (what) => {
    const { id, key, position } = event
    const entry = { what, subscription, id, key, position: String(position), pid: process.pid, attempt, idempotencyKey }
    appendFileSync(ledger, `${JSON.stringify(entry)}\n`)
  }
  write('begin')
  if (dies?.on === event.id && dies.when === 'begin') die(subscription, dies)
  if (cpuMs) for (const end = performance.now() + cpuMs; performance.now() < end; );
  if (workMs > 0) await pause(Math.random() * workMs)
  if (holds?.on === event.id) while (!existsSync(holds.until)) await pause(10)
  if (fails === 'all' || fails.includes(event.id)) throw new Error('this handler is broken')
  if (attempt === 1 && Math.random() < failFirst) throw new Error('now and then')
  if (effects) await context.tx.query(`insert into ${effects} values ($1)`, [event.id])
  write('end')
  if (dies?.on === event.id && dies.when === 'end') die(subscription, dies)
}

/** So often as it was told, counted in the ledger: this process remembers nothing of those before it. */
function die(subscription, { on, how, times = Number.POSITIVE_INFINITY, when }) {
  const lines = readFileSync(ledger, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  const before = lines.filter((line) => line.what === when && line.id === on && line.subscription === subscription)
  if (before.length > times) return
  if (how === 'exit') process.exit(1)
  if (how === 'kill') process.kill(process.pid, 'SIGKILL')
  if (how === 'heap') for (const hoard = []; ; ) hoard.push(new Array(100_000).fill(hoard.length))
}

async function end(code) {
  await ac.stop()
  console.log('stopped')
  process.exit(code)
}

process.on('SIGTERM', () => void end(0))
createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'stop') void end(0)
  if (line === 'report') {
    const rss = Math.round(process.memoryUsage.rss() / 2 ** 20)
    console.log(`report ${JSON.stringify({ rss, files: readdirSync('/proc/self/fd').length })}`)
  }
})
await ac.start()
console.log('started')
