import { describe, expect, it } from 'vitest'
import { describeWorkflows, memoryWorkflows, type WorkflowsUnderTest } from '../../src/testing/index.ts'

describeWorkflows('workflows in memory', async () => underTest(), { describe, it, expect })

describe('the suite itself', () => {
  it('finds workflows that take an input twice, forget timers or do not answer', async () => {
    const twice = await failures(({ execute, ...rest }) => ({
      ...rest,
      execute: (workflow, input, { tx } = {}) => execute(workflow, input, { tx }),
    }))
    expect(twice).toEqual([
      'an input with an id is taken once, and answers later as the first time, also when it was rejected',
    ])
    const unpaused = await failures((words) => ({ ...words, pause: async () => true, resume: async () => true }))
    expect(unpaused).toEqual([
      'a paused instance takes nothing and wakes for nothing until it is resumed',
      'an effect that fails while its instance is paused is tried again when it is resumed, not before',
      'what came while it was paused is for the next life, where a new one begins first',
    ])
    const keyless = await failures(({ execute, ...rest }) => ({
      ...rest,
      execute: (workflow, input, options) => execute(workflow, { ...input, key: undefined }, options),
    }))
    expect(keyless.length).toBeGreaterThan(1)
  })
})

type Words = WorkflowsUnderTest['workflows']

function underTest(spoil: (words: Words) => Words = (words) => words): WorkflowsUnderTest {
  const workflows = memoryWorkflows()
  return {
    workflows: spoil(workflows),
    deadLetters: workflows.deadLetters,
    transaction: (fn) => workflows.transaction(fn),
    start: async () => {},
    work: () => workflows.advance('10ms'),
    stop: async () => {},
  }
}

/** The titles of the scenarios that fail. */
async function failures(spoil: (words: Words) => Words): Promise<string[]> {
  const bodies: [string, () => Promise<void>][] = []
  const collect = (title: string, body: () => Promise<void>) => void bodies.push([title, body])
  describeWorkflows('collected', async () => underTest(spoil), { describe: (_, body) => body(), it: collect, expect })
  const failed: string[] = []
  for (const [title, body] of bodies) await body().catch(() => failed.push(title))
  return failed
}
