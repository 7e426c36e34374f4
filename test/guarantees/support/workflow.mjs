// A process that runs one workflow and writes every call of an effect into a file that is not the product's.
// Usage: node workflow.mjs <json>: url, ledger, and what is to happen (`dies`, `holdsUntil`, `writes`).
//   dies: 'in the effect' | 'after the effect': the first so many times, or always
//   writes: puts inputs in without end, each under an id of its own
//   diesOnce: { at, mark }: while a timer fires, once: 'load', 'decision', 'commit' (before it is asked for), 'sent' (after)
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { accept, after, createAftercommit, defineWorkflow } from '../../../dist/index.js'

const { url, ledger, dies, diesOnce, holdsUntil, writes } = JSON.parse(process.argv[2])
process.on('unhandledRejection', (error) => console.log(`UNHANDLED ${error?.stack}`))

const say = (level) => (fields, message) => console.log(`${level} ${message} ${fields.err?.message ?? ''}`)
const logger = { debug: () => {}, info: () => {}, warn: say('warn'), error: say('error'), child: () => logger }

/** Asked, done and rung: each step writes two events, and where it goes on, an effect and a timer. */
const task = defineWorkflow({
  type: 'task',
  id: ({ id }) => id,
  initial: () => ({ status: 'new', rung: 0 }),
  evolve(state, { type }) {
    if (type === 'rang') return { ...state, rung: state.rung + 1 }
    return { ...state, status: type === 'noted' ? state.status : type }
  },
  decide(_, { id, type }) {
    if (type === 'rang') dieAt('decision')
    const events = [{ type: 'noted' }, { type }]
    if (type !== 'asked') return accept(events)
    return accept(events, {
      effects: [{ type: 'do', id }],
      timers: [after('50ms', { id, type: 'rang' }, { key: 'bell' })],
    })
  },
  isTerminal: ({ status }) => status === 'failed',
  uniqueKey: ({ key }) => key,
  onDeadLetter: ({ workflow }) => ({ id: workflow.id, type: 'failed' }),
  snapshots: { every: 3 },
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
  if (text.includes('workflow_load')) dieAt('load')
  if (text.includes('workflow_commit')) {
    dieAt('commit')
    setTimeout(() => dieAt('sent'), 1)
  }
  return send.call(this, data, ...rest)
}

const ac = createAftercommit({ database: url, logger, poolSize: 5, runtime: { shutdownTimeout: '10s' } })
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
  for (let n = 0; ; n++) {
    const id = `${process.pid}-${n}`
    await Promise.all(
      [1, 2, 3].map((one) => ac.workflows.execute(task, { id: `${id}-${one}`, type: 'asked', key: `${id}-${one}` })),
    )
    if (n === 0) console.log('writing')
  }
}
