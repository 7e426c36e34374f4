/** What becomes of timers: each fires once, at its time or later, unless it was replaced or cancelled. */
import { definePlay, type Line } from './contract-workflow.ts'
import type { WorkflowScenario, WorkflowStage } from './workflow-contract.ts'

const play = definePlay('play')
/** Longer than any scenario takes. */
const FAR_MS = 3_600_000

export const timerScenarios: readonly WorkflowScenario[] = [
  [
    'a timer fires once, with its input, and one without a key leaves others alone',
    async ({ under, expect, until }) => {
      await begin(under)
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [soon('x'), soon('y')] })
      await until(async () => (await words(under)).length === 3)
      await under.workflows.execute(play, { id: 'a', say: ['two'], later: [soon('z')] })
      await until(async () => (await words(under)).includes('z'))
      expect([(await words(under)).sort(), await under.workflows.timers()]).toEqual([['one', 'two', 'x', 'y', 'z'], []])
    },
  ],
  [
    'a timer takes the place of the one with the same key, of the same instance only',
    async ({ under, expect, until }) => {
      await begin(under)
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [far('late', 'k'), far('other', 'l')] })
      await under.workflows.execute(play, { id: 'b', say: ['one'], later: [{ ...far('late', 'k') }] })
      const due = async () => (await under.workflows.timers()).map(({ id, key }) => `${id} ${key}`).sort()
      expect(await due()).toEqual(['a k', 'a l', 'b k'])
      await under.workflows.execute(play, { id: 'a', say: ['two'], later: [soon('early', 'k')] })
      await until(async () => (await words(under)).includes('early'))
      expect([await words(under), await due()]).toEqual([
        ['one', 'two', 'early'],
        ['a l', 'b k'],
      ])
    },
  ],
  [
    'a timer that was cancelled never fires; cancelling what is not there does nothing',
    async ({ under, expect, until }) => {
      await begin(under)
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [far('never', 'k')] })
      await under.workflows.execute(play, { id: 'a', say: ['two'], cancel: ['k', 'unknown'], later: [soon('last')] })
      await until(async () => (await words(under)).includes('last'))
      expect([await words(under), await under.workflows.timers()]).toEqual([['one', 'two', 'last'], []])
    },
  ],
  [
    'one decision may cancel a timer and arm another with its key',
    async ({ under, expect, until }) => {
      await begin(under)
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [far('never', 'k')] })
      await under.workflows.execute(play, { id: 'a', say: ['two'], cancel: ['k'], later: [soon('new', 'k')] })
      await until(async () => (await words(under)).includes('new'))
      expect(await under.workflows.timers()).toEqual([])
    },
  ],
  [
    'a timer may arm itself again while it fires',
    async ({ under, expect, until }) => {
      await begin(under)
      const third = soon('three', 'k')
      const second = { ms: 1, key: 'k', line: { id: 'a', say: ['two'], later: [third] } }
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [second] })
      await until(async () => (await words(under)).length === 3)
      expect([await words(under), await under.workflows.timers()]).toEqual([['one', 'two', 'three'], []])
    },
  ],
  [
    'the end cancels timers, also those that the last decision arms',
    async ({ under, expect }) => {
      await begin(under)
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [far('never', 'k')] })
      await under.workflows.execute(play, { id: 'a', say: ['end'], later: [far('never', 'l')] })
      expect(await under.workflows.timers()).toEqual([])
    },
  ],
  [
    'what was due before anything ran fires once',
    async ({ under, expect, until }) => {
      under.workflows.register(play)
      await under.workflows.execute(play, {
        id: 'a',
        say: ['one'],
        later: [{ ms: 0, line: { id: 'a', say: ['two'] } }],
      })
      await under.start()
      await until(async () => (await words(under)).includes('two'))
      await under.workflows.execute(play, { id: 'a', say: ['three'], later: [soon('four')] })
      await until(async () => (await words(under)).includes('four'))
      expect(await words(under)).toEqual(['one', 'two', 'three', 'four'])
    },
  ],
  [
    'a workflow hears of a timer that cannot be decided, and the letter is settled',
    async ({ under, expect, until }) => {
      await begin(under)
      const line = { id: 'a', giveUp: true }
      await under.workflows.execute(play, { id: 'a', say: ['one'], later: [{ ms: 1, key: 'report', line }] })
      await until(async () => (await under.workflows.query(play, 'a'))?.completed === true)
      expect(await words(under)).toEqual(['one', 'failed report', 'end'])
      expect((await under.deadLetters.list()).map(({ kind, status }) => [kind, status])).toEqual([
        ['timer', 'resolved'],
      ])
    },
  ],
  [
    'a dead timer whose key is armed again does not fire any more; one that is redriven does',
    async ({ under, expect, until }) => {
      await begin(under)
      const { workflows, deadLetters } = under
      const broken = (key: string) => ({ ms: 1, key, line: { id: 'a', giveUp: true } })
      await workflows.execute(play, { id: 'a', say: ['one'], later: [broken('k'), broken('l')] })
      await until(async () => (await deadLetters.count({ status: 'dead' })) === 2)
      await workflows.execute(play, { id: 'a', say: ['two'], later: [far('later', 'k')] })
      expect((await deadLetters.list()).map(({ status }) => status).sort()).toEqual(['dead', 'discarded'])
      // It is decided once more, and dies once more.
      expect(await deadLetters.redrive({ owner: 'play' })).toEqual(1)
      await until(async () => (await deadLetters.list({ status: 'dead' })).some(({ attempts }) => attempts === 2))
      expect((await workflows.timers()).map(({ key }) => key)).toEqual(['k'])
    },
  ],
]

function soon(word: string, key?: string) {
  return toLater(5, word, key)
}

function far(word: string, key: string) {
  return toLater(FAR_MS, word, key)
}

function toLater(ms: number, word: string, key?: string): NonNullable<Line['later']>[number] {
  return { ms, line: { id: 'a', say: [word] }, ...(key !== undefined && { key }) }
}

async function begin({ workflows, start }: WorkflowStage['under']): Promise<void> {
  workflows.register(play)
  await start()
}

async function words({ workflows }: WorkflowStage['under']): Promise<string[]> {
  return (await workflows.history(play, 'a')).map(({ payload }) => payload.word)
}
