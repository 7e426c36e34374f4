/** graphile-worker doing the same: jobs in a transaction, and processes that POST them. */
import { makeWorkerUtils } from 'graphile-worker'
import pg from 'pg'
import { now, startChild } from './child.mjs'
import { createBenchDatabase } from './database.mjs'
import { eventually } from './eventually.mjs'
import { quiet } from './quiet.mjs'

const ADD = `select from graphile_worker.add_jobs(array(
  select jsonb_populate_record(null::graphile_worker.job_spec, spec) from jsonb_array_elements($1::jsonb) spec))`

/** `toSpecs` makes the jobs of one call: one, as a rule. */
export async function openGraphile({
  server,
  name,
  receiver,
  toSpecs = toSpec,
  reach = (url) => ({ url }),
  ...options
}) {
  const database = await createBenchDatabase(server.url, name)
  // As many connections to write with as aftercommit has in this process.
  const pool = new pg.Pool({ connectionString: database.url, max: 4 })
  pool.on('error', () => {})
  const utils = await makeWorkerUtils({ connectionString: database.url, logger: quiet })
  await utils.migrate()
  const processes = []

  const isEmpty = async () => (await pool.query('select from graphile_worker._private_jobs limit 1')).rowCount === 0

  return {
    async start(count = 1) {
      const config = { receiver, ...options, ...(await reach(database.url)) }
      for (let n = 0; n < count; n++) processes.push(await startChild('./graphile-process.mjs', config))
    },
    async stop() {
      await Promise.all(processes.splice(0).map((child) => child.close()))
    },
    async kill() {
      await Promise.all(processes.splice(0).map((child) => child.kill()))
    },
    /** By itself it takes the jobs of a dead process again after four hours; whoever knows that all are dead may say so. */
    async freeJobsOfTheDead() {
      const { rows } = await pool.query(
        'select distinct locked_by from graphile_worker._private_jobs where locked_by is not null',
      )
      await utils.forceUnlockWorkers(rows.map(({ locked_by: worker }) => worker))
    },
    async commit(calls) {
      const client = await pool.connect()
      await client.query('begin')
      await client.query(ADD, [JSON.stringify(calls.flatMap(toSpecs))])
      const committing = now()
      await client.query('commit')
      client.release()
      return committing
    },
    settled: () => eventually(isEmpty, 'the last job of graphile-worker'),
    async close() {
      await Promise.all(processes.splice(0).map((child) => child.close()))
      await utils.release()
      await pool.end()
      await database.close()
    },
  }
}

function toSpec(call) {
  return { identifier: 'call', payload: call }
}
