/** A timer that is due and an input that cancels it, at the same moment and in several processes: one of them, never both. */
import type { Client } from 'pg'
import { expect, it } from 'vitest'
import { accept, after, defineWorkflow, reject } from '../../src/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { counter } from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

const INSTANCES = 150

const bomb = defineWorkflow({
  type: 'bomb',
  id: ({ id }: { id: string; type: 'arm' | 'stop' | 'ring' }) => id,
  initial: () => ({ ended: false }),
  evolve: (_, { type }: { type: 'armed' | 'stopped' | 'rang' }) => ({ ended: type !== 'armed' }),
  decide({ ended }, { id, type }) {
    if (ended) return reject('too late')
    if (type === 'stop') return accept([{ type: 'stopped' }], { cancelTimers: ['fuse'] })
    if (type === 'ring') return accept([{ type: 'rang' }])
    return accept([{ type: 'armed' }], { timers: [after('30ms', { id, type: 'ring' }, { key: 'fuse' })] })
  },
})

it('a timer rings or is stopped', async () => {
  const { open, rows, sql } = await openWorkflows()
  const processes = [open(), open(), open()]
  for (const ac of processes) {
    ac.workflows.register(bomb)
    await ac.start()
  }
  const ids = Array.from({ length: INSTANCES }, (_, n) => `b${n}`)
  const outcomes = await Promise.all(
    ids.map(async (id, n) => {
      const [armed, stopping] = [processes[n % 3]!, processes[(n + 1) % 3]!]
      await armed.workflows.execute(bomb, { id, type: 'arm' })
      // Some when it is about to ring, some when it has.
      await new Promise((resolve) => setTimeout(resolve, n % 60))
      return stopping.workflows.execute(bomb, { id, type: 'stop' })
    }),
  )
  await eventually(async () => (await rows('deliveries')) === 0)
  const { rows: histories } = await sql.query(
    `select aggregate_id as id, string_agg(payload ->> 'type', ' ' order by version) as words
       from aftercommit.events where aggregate_type = 'bomb' group by 1`,
  )
  const expected = ids.map((id, n) => [id, outcomes[n]!.outcome === 'accepted' ? 'armed stopped' : 'armed rang'])
  expect(new Map(histories.map(({ id, words }) => [id, words]))).toEqual(new Map(expected as [string, string][]))
  expect(await rows('letters')).toBe(0)
})

it.each(['repeatable read', 'serializable'])(
  'a transaction in %s that meets a newer instance gets 40001, which it may repeat',
  async (isolation) => {
    const { open, url } = await openWorkflows()
    const ac = open()
    ac.workflows.register(counter)
    ac.workflows.register(circle)
    const execute = {
      'a new instance': (tx?: Client) => ac.workflows.execute(counter, { id: 'new' }, { tx }),
      'an instance that began a new life': (tx?: Client) => ac.workflows.execute(circle, { id: 'round' }, { tx }),
    }
    const client = await connect(url)
    for (const [what, step] of Object.entries(execute)) {
      await client.query(`begin isolation level ${isolation}`)
      await client.query('select from aftercommit.events')
      await step()
      await expect(step(client), what).rejects.toMatchObject({ code: '40001' })
      await client.query('rollback')
    }
  },
)

/** Begins a new life with every input that an instance takes after its first. */
const circle = defineWorkflow({
  type: 'circle',
  id: ({ id }: { id: string; again?: boolean }) => id,
  initial: () => 0,
  evolve: (count: number, _: { type: 'turned' }) => count + 1,
  decide(_, { id, again }) {
    return accept([{ type: 'turned' }], again ? {} : { continueAsNew: { id, again: true } })
  },
})
