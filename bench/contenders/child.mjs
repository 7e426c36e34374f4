/**
 * A program of its own process that answers questions. The parent calls `startChild` and asks; the program hands its
 * answers to `serve`. A child ends when its parent does, and a question to a child that is gone is refused.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Milliseconds on the clock that all processes of a machine share. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Starts `bench/contenders/<file>` and resolves when it answers. */
export async function startChild(file, config) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(config)])
  const waiting = new Map()
  let asked = 0
  let stopping = false
  const exited = once(child, 'exit')
  child.on('message', ({ id, value, error }) => {
    const question = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) question?.resolve(value)
    else question?.reject(new Error(`${file}: ${error}`))
  })
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ended (${signal ?? `code ${code}`})`))
    waiting.clear()
  })

  function ask(what, argument) {
    if (child.exitCode !== null || child.signalCode !== null) return Promise.reject(new Error(`${file} is not running`))
    asked++
    const id = asked
    const answer = new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject })
      child.send({ id, what, argument })
    })
    // A journey that failed elsewhere waits for no answer any more: the other journeys are played all the same.
    answer.catch(() => {})
    return answer
  }

  const ready = ask('ready')
  await ready.catch((error) => {
    child.kill('SIGKILL')
    throw error
  })
  return {
    ask,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    /** Asks the program to close what it has open, and ends it when it does not do so in time. */
    async close() {
      if (stopping || child.exitCode !== null || child.signalCode !== null) return
      stopping = true
      const tooLong = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS)
      await ask('close').catch(() => {})
      if (child.connected) child.disconnect()
      await exited
      clearTimeout(tooLong)
    },
  }
}

const CLOSE_MS = 10_000

/** The child's side: `answers` has a function for each question; `close` is called before the process ends. */
export function serve({ close, ...answers }) {
  const all = { ready() {}, close: () => close?.(), ...answers }
  process.on('message', async ({ id, what, argument }) => {
    try {
      process.send({ id, value: await all[what](argument) })
    } catch (error) {
      process.send({ id, error: error.stack ?? String(error) })
    }
  })
  process.on('disconnect', () => process.exit())
}

/** What the parent gave along. */
export function readConfig() {
  return JSON.parse(process.argv[2])
}
