import { describe, expect, it } from 'vitest'
import { accept, defineWorkflow, type WorkflowOptions } from '../../src/index.ts'
import { memoryWorkflows } from '../../src/testing/index.ts'

type Input = { id: string }
type Counted = { type: 'counted' }
type Options = WorkflowOptions<{ count: number }, Input, Counted, { type: 'print' }, never>

const counter: Options = {
  type: 'counter',
  id: ({ id }) => id,
  initial: () => ({ count: 0 }),
  evolve: ({ count }) => ({ count: count + 1 }),
  decide: () => accept([{ type: 'counted' }]),
  isTerminal: ({ count }) => count === 3,
}

const promise = (async () => undefined) as never
const nothing = (() => undefined) as never

describe('a function of a workflow written in plain JavaScript', () => {
  it.each<[string, Partial<Options>, string]>([
    ['an async `id`', { id: promise }, '`id` of workflow "counter" returned a promise'],
    ['an `id` of nothing', { id: nothing }, '`id` of workflow "counter" returned undefined'],
    ['an async `initial`', { initial: promise }, '`initial` of workflow "counter" returned a promise'],
    ['an `initial` of nothing', { initial: nothing }, '`initial` of workflow "counter" returned undefined'],
    ['an async `evolve`', { evolve: promise }, '`evolve` of workflow "counter" returned a promise'],
    ['an `evolve` of nothing', { evolve: nothing }, '`evolve` of workflow "counter" returned undefined'],
    ['an async `decide`', { decide: promise }, '`decide` of workflow "counter" returned a promise'],
    ['an async `isTerminal`', { isTerminal: promise }, '`isTerminal` of workflow "counter" returned a promise'],
    ['an `isTerminal` of nothing', { isTerminal: nothing }, '`isTerminal` of workflow "counter" returned undefined'],
    ['an async `uniqueKey`', { uniqueKey: promise }, '`uniqueKey` of workflow "counter" returned a promise'],
    [
      'an async `decide` that fails, without ending the process',
      { decide: (async () => Promise.reject(new Error('late'))) as never },
      '`decide` of workflow "counter" returned a promise',
    ],
    [
      'an async `destination`',
      {
        decide: () => accept([{ type: 'counted' }], { effects: [{ type: 'print' }] }),
        destination: promise,
      },
      '`destination` of workflow "counter" returned a promise',
    ],
    [
      'an async `snapshots.encode`',
      { snapshots: { every: 1, encode: promise } },
      '`snapshots.encode` of workflow "counter" returned a promise',
    ],
    [
      'an async `observe.redact`',
      { observe: { redact: promise } },
      '`observe.redact` of workflow "counter" returned a promise',
    ],
  ])('is refused by name, and nothing is written: %s', async (_, options, message) => {
    const workflows = memoryWorkflows()
    const workflow = defineWorkflow({ ...counter, ...options })
    await workflows.register(workflow, { effects: { print: () => undefined } })
    await expect(workflows.execute(workflow, { id: 'a' })).rejects.toMatchObject({
      code: 'BAD_ANSWER',
      message: expect.stringContaining(message),
    })
    expect(await workflows.history(workflow, 'a')).toEqual([])
  })

  it('may use the other functions of the workflow by `this`', () => {
    const workflow = defineWorkflow({
      ...counter,
      isTerminal(this: Options, state) {
        return state.count === this.initial().count
      },
    })
    expect(workflow.isTerminal?.({ count: 0 })).toBe(true)
  })
})
