/**
 * An event that ends the process which handles it is counted, and after its tries it is a dead letter like any other.
 * The test is the supervisor: it starts the process again until the process lives.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { emitMany } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import {
  type Behaviour,
  expectOrderPerKey,
  fileLedger,
  startWorker,
  type WorkerSubscription,
} from './support/workers.ts'

beforeAll(buildPackage)

const MAX_ATTEMPTS = 3

async function supervise(
  subscription: Partial<WorkerSubscription>,
  behaviour: Behaviour,
  env: Record<string, string> = {},
) {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const ledger = fileLedger()
  await emitMany(sql, 300, { keys: 30 })
  const retry = { maxAttempts: MAX_ATTEMPTS, initialDelay: '10ms' }
  const options = {
    instance: { database: url },
    subscriptions: [{ id: 'sub', retry, ...subscription, behaviour }],
    env,
  }
  const isOver = async () => {
    const { rows } = await sql.query('select position from aftercommit.checkpoints')
    return rows[0]?.position === '300'
  }
  let deaths = 0
  for (;;) {
    const worker = await startWorker(ledger, options)
    const outcome = await Promise.race([
      worker.exited.then(() => 'died' as const),
      eventually(isOver, { deadline: 60_000 }).then(() => 'lives' as const),
    ])
    if (outcome === 'lives') break
    deaths++
    expect(deaths).toBeLessThan(12)
    // A supervisor need not wait for the lease: the lock of the dead process is free.
  }
  return { sql, ledger, deaths }
}

describe('an event whose handler ends the process', () => {
  it.each([
    { mode: 'one lane', subscription: {} },
    { mode: 'lanes', subscription: { concurrency: 4 } },
    { mode: 'batches', subscription: { batch: true } },
    { mode: 'a transaction', subscription: { transactional: true } },
  ])('is parked after its tries and the rest proceeds, with $mode', async ({ subscription }) => {
    const dies = { on: 'event-150', how: 'exit', when: 'begin' } as const
    const { sql, ledger, deaths } = await supervise(subscription, { dies })
    const { rows } = await sql.query(`select event_id, error ->> 'code' as code, attempts from aftercommit.letters`)
    expect(rows).toEqual([{ event_id: 'event-150', code: 'PROCESS_DIED', attempts: MAX_ATTEMPTS }])
    const begun = ledger.entries().filter(({ what, id }) => what === 'begin' && id === 'event-150')
    // Three tries are not counted at most: the first, one that moves the checkpoint up to the event before the process dies
    // again, and one beside the other events of the window. From then on the event runs alone.
    expect(begun.length).toBeLessThanOrEqual(MAX_ATTEMPTS + 3)
    expect(deaths).toBe(begun.length)
    const done = new Set(ledger.ended().map(({ id }) => id))
    const { rows: parked } = await sql.query('select event ->> $1 as id from aftercommit.parked', ['id'])
    expect(parked.map(({ id }) => id)).toEqual(['event-180', 'event-210', 'event-240', 'event-270', 'event-300'])
    expect(done.size).toBe(300 - 1 - 5)
    expectOrderPerKey(ledger.ended())
  })

  it('by using up its memory is isolated from its batch: no endless loop of crashes', async () => {
    const dies = { on: 'event-20', how: 'heap', when: 'begin' } as const
    const env = { NODE_OPTIONS: '--max-old-space-size=48' }
    const { sql, ledger } = await supervise({ batch: true, batchSize: 50 }, { dies }, env)
    const { rows } = await sql.query(`select event_id, error ->> 'code' as code from aftercommit.letters`)
    expect(rows).toEqual([{ event_id: 'event-20', code: 'PROCESS_DIED' }])
    expect(new Set(ledger.ended().map(({ id }) => id)).size).toBe(300 - 1 - 9)
  })
})
