import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defineWorkflow, type Workflows } from '../../src/index.ts'
import { memoryWorkflows } from '../../src/testing/index.ts'
import { instance } from '../log/support/open-log.ts'
import { testDatabase } from '../support/database.ts'
import { type OrderInput, order } from '../testing/support/order-workflow.ts'

/** Snapshots often, so that they are part of what is compared. */
const snapped = defineWorkflow({ ...order, snapshots: { every: 2, keep: 'all' } })
type Words = Pick<Workflows, 'execute' | 'query' | 'history' | 'stateAt' | 'list' | 'timers'>

const ids = ['a', 'b']
const input: fc.Arbitrary<OrderInput> = fc.oneof(
  fc.record({
    type: fc.constant('place' as const),
    id: fc.constantFrom(...ids),
    total: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ type: fc.constant('again' as const), id: fc.constantFrom(...ids), total: fc.constant(4) }),
  fc.record({
    type: fc.constantFrom('pay' as const, 'pay' as const, 'remind' as const, 'expire' as const, 'ship' as const),
    id: fc.constantFrom(...ids),
  }),
)
const call = fc.record({ input, inputId: fc.option(fc.constantFrom('1', '2', '3'), { nil: undefined, freq: 3 }) })

describe('the twin in memory', () => {
  it('gives the same outcomes, histories, states and timers as Postgres for the same inputs', async () => {
    const { url } = await testDatabase({ migrated: true })
    const ac = instance({ database: url })
    ac.workflows.register(snapped)
    let run = 0
    const seen = new Set<string>()
    const property = fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 60, size: 'max' }), async (calls) => {
      // Instances of a run of its own: the database is shared by all runs, and so are unique keys.
      const prefix = `${++run}`
      const twin = memoryWorkflows()
      twin.register(snapped)
      const real = await play(ac.workflows, calls, prefix)
      expect(await play(twin, calls, prefix)).toEqual(real)
      for (const kind of kindsOf(real)) seen.add(kind)
    })
    await fc.assert(property, { numRuns: 40 })
    // What never happened was not compared.
    expect([...seen].sort()).toEqual(['UNIQUE_KEY_TAKEN', 'accepted', 'another life', 'completed', 'rejected'])
  })
})

interface Call {
  readonly input: OrderInput
  readonly inputId: string | undefined
}

/** Everything that can be seen, but for ids, positions and times. */
async function play(workflows: Words, calls: readonly Call[], prefix: string) {
  const outcomes: { outcome?: string; code?: string | undefined }[] = []
  for (const { input: given, inputId } of calls) {
    const own = {
      ...given,
      id: `${prefix}${given.id}`,
      ...('total' in given && { total: given.total + 10 * Number(prefix) }),
    }
    outcomes.push(await workflows.execute(snapped, own as OrderInput, { inputId }).catch(toFailure))
  }
  const instances = []
  for (const id of ids.map((name) => prefix + name)) {
    const now = await workflows.query(snapped, id)
    const states = []
    for (let version = 1; version <= (now?.version ?? 0) + 1; version++) {
      states.push(await workflows.stateAt(snapped, id, version))
    }
    const history = (await workflows.history(snapped, id)).map(({ type, version, payload }) => [type, version, payload])
    const timers = (await workflows.timers({ type: 'order', id })).map(({ key, held }) => [key, held])
    instances.push({ id, now, states, history, timers: timers.sort() })
  }
  const { items } = await workflows.list(snapped)
  const listed = items
    .filter(({ id }) => ids.some((name) => id === prefix + name))
    .map(({ id, version, generation, completed, uniqueKey }) => [id, version, generation, completed, uniqueKey])
  return { outcomes, instances, listed }
}

function kindsOf({ outcomes, listed }: Awaited<ReturnType<typeof play>>): string[] {
  const kinds = outcomes.map((one) => one.outcome ?? one.code ?? 'nothing')
  return listed.some(([, , generation]) => generation !== 1) ? [...kinds, 'another life'] : kinds
}

function toFailure(error: { code?: string; holder?: string }) {
  return { code: error.code, holder: error.holder }
}
