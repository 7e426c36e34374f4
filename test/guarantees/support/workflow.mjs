// A process that runs one workflow and writes every call of an effect into a file that is not the product's.
// Usage: node workflow.mjs <json>: url, ledger, and what is to happen (`dies`, `holdsUntil`, `writes`).
//   dies: 'in the effect' | 'after the effect': the first so many times, or always
//   writes: puts inputs in, three at a time and so many times, or without end (true), each under an id of its own
//   diesOnce: { at, mark }: at the first step, once: 'load', 'decision', 'commit' (before it is asked for), 'sent' (after)
//   shutdown: how long it waits for what is under way when it is told to end
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { accept, after, createAftercommit, defineWorkflow } from '../../../lib/index.js'

const { url, ledger, dies, diesOnce, holdsUntil, writes, shutdown = '10s' } = JSON.parse(process.argv[2])
process.on('unhandledRejection', (error) => console.log(`UNHANDLED ${error?.stack}`))

const say = (level) => (fields, message) => console.log(`${level} ${message} ${fields.err?.message ?? ''}`)
const logger = { debug: () => {}, info: () => {}, warn: say('warn'), error: say('error'), child: () => logger }

/** Asked, done and rung: each step writes two events, and where it goes on, an effect and timers; done, one is cancelled. */
const task = defineWorkflow({
  type: 'task',
  id: ({ id }) => id,
  initial: () => ({ status: 'new', rung: 0 }),
  evolve(state, { type }) {
    if (type === 'rang') return { ...state, rung: state.rung + 1 }
    return { ...state, status: type === 'noted' ? state.status : type }
  },
  decide(_, { id, type }) {
    dieAt('decision')
    const events = [{ type: 'noted' }, { type }]
    if (type === 'done') return accept(events, { cancelTimers: ['reminder'] })
    if (type !== 'asked') return accept(events)
    return accept(events, {
      effects: [{ type: 'do', id }],
      timers: [
        after('50ms', { id, type: 'rang' }, { key: 'bell' }),
        after('30m', { id, type: 'late' }, { key: 'reminder' }),
      ],
    })
  },
  isTerminal: ({ status }) => status === 'failed',
  uniqueKey: ({ key }) => key,
  onDeadLetter: ({ workflow }) => ({ id: workflow.id, type: 'failed' }),
  snapshots: { every: 3 },
  observe: {},
})

function dieAt(at) {
  if (diesOnce?.at !== at || existsSync(diesOnce.mark)) return
  writeFileSync(diesOnce.mark, '')
  process.kill(process.pid, 'SIGKILL')
}

/** What this process asks of the database, as it leaves. */
const { write: send } = Socket.prototype
Socket.prototype.write = function (data, ...rest) {
  const text = diesOnce === undefined ? '' : String(data)
  if (text.includes('"ask":true')) dieAt('load')
  if (/"state_version".*"events":\[/s.test(text)) {
    dieAt('commit')
    setTimeout(() => dieAt('sent'), 1)
  }
  return send.call(this, data, ...rest)
}

const ac = createAftercommit({ database: url, logger, poolSize: 5, runtime: { shutdownTimeout: shutdown } })
ac.workflows.register(task, {
  effects: {
    do: {
      retry: { maxAttempts: 2, initialDelay: '10ms', maxDelay: '20ms' },
      async handle({ id }, { idempotencyKey, attempt }) {
        write({ what: 'begin', id, idempotencyKey, attempt })
        const begun = calls('begin').filter((call) => call.id === id).length
        if (dies?.when === 'in the effect' && begun <= (dies.times ?? Infinity)) process.kill(process.pid, 'SIGKILL')
        while (holdsUntil && !existsSync(holdsUntil)) await pause(5)
        write({ what: 'end', id, idempotencyKey, attempt })
        if (dies?.when === 'after the effect' && begun <= dies.times) process.kill(process.pid, 'SIGKILL')
        return { id, type: 'done' }
      },
    },
  },
})

function write(entry) {
  appendFileSync(ledger, `${JSON.stringify({ ...entry, pid: process.pid })}\n`)
}

function calls(what) {
  const lines = readFileSync(ledger, 'utf8').split('\n')
  return lines.flatMap((line) => (line === '' ? [] : [JSON.parse(line)])).filter((call) => call.what === what)
}

process.on('SIGTERM', async () => {
  await ac.stop().catch(() => {})
  console.log('stopped')
  process.exit(0)
})

await ac.start()
console.log('started')
if (writes) {
  for (let n = 0; writes === true || n < writes; n++) {
    const ids = [1, 2, 3].map((one) => `${process.pid}-${n}-${one}`)
    await Promise.all(
      ids.map((id) => ac.workflows.execute(task, { id, type: 'asked', key: id }, { inputId: `input ${id}` })),
    )
    if (n === 0) console.log('writing')
  }
  console.log('written')
}
