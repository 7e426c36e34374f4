/** aftercommit as its users have it: rules in a file, events in a transaction, and processes that are started. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAftercommit } from 'aftercommit'
import { now, startChild } from './child.mjs'
import { createBenchDatabase } from './database.mjs'
import { eventually } from './eventually.mjs'

/**
 * `rules` is the text of aftercommit.toml. `reach` makes of the database's address the options of the processes that work;
 * the events are always written next door. With `recordsRuns` everything is done when each event has its run record too.
 */
export async function openAftercommit({
  server,
  name,
  jit,
  rules,
  recordsRuns = false,
  reach = (database) => ({ database }),
}) {
  const database = await createBenchDatabase(server.url, name, { jit })
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-journey-'))
  const file = join(folder, 'aftercommit.toml')
  writeFileSync(file, rules)
  const ac = createAftercommit({ database: database.url, poolSize: 4 })
  await ac.migrate()
  const processes = []
  let last = 0n
  let events = 0

  async function isSettled() {
    const { position } = await ac.subscriptions.get('observers').status()
    if (position < last) return false
    const rows = await ac.deliveries.count()
    return Object.values(rows).every((count) => count === 0) && (!recordsRuns || (await countRuns()) >= events)
  }

  async function countRuns() {
    const { rows } = await ac.transaction((tx) => tx.query('select count(*) from aftercommit.observer_runs'))
    return Number(rows[0].count)
  }

  return {
    ac,
    async start(count = 1) {
      const config = { file, ...(await reach(database.url)) }
      for (let n = 0; n < count; n++) processes.push(await startChild('./aftercommit-process.mjs', config))
    },
    async stop() {
      await Promise.all(processes.splice(0).map((child) => child.close()))
    },
    async kill() {
      await Promise.all(processes.splice(0).map((child) => child.kill()))
    },
    /** Commits all of them in one transaction, and answers when COMMIT was sent. */
    async commit(calls) {
      let committing = 0
      events += calls.length
      await ac.transaction(async (tx) => {
        for (let first = 0; first < calls.length; first += 1_000) {
          const emitted = await tx.emit(calls.slice(first, first + 1_000).map(toEvent))
          last = emitted.at(-1).position
        }
        committing = now()
      })
      return committing
    },
    /** Everything is done, and the database knows it. */
    settled: () => eventually(isSettled, 'the checkpoint of the observers, or the last delivery'),
    /** How many deliveries were ever written: attempts that became rows. */
    rowsSoFar: async () => {
      const { rows } = await ac.transaction((tx) => tx.query('select last_value from aftercommit.delivery_ids'))
      return Number(rows[0].last_value)
    },
    async close() {
      await Promise.all(processes.splice(0).map((child) => child.close()))
      await ac.stop()
      await database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function toEvent({ id, type, data }) {
  return { type, aggregate: { type: 'call', id }, payload: data }
}

/** `rules` for one observer for each set of keys, all of them for this receiver, which is on this machine. */
export function toRules(receiver, observers) {
  const texts = Object.entries(observers).map(
    ([name, { path = '/hook', ...keys }]) => `
[observers.${name}]
${Object.entries(keys)
  .map(([key, value]) => `${key} = ${value}`)
  .join('\n')}
actions = [{ type = "webhook", url = "${receiver}${path}" }]
`,
  )
  return `[network]\nallow = ["127.0.0.1"]\n${texts.join('')}`
}
