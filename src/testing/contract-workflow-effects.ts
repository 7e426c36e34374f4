/** What becomes of effects: done at least once, answered once, reported when they cannot be done. */
import { GiveUp } from '../subscriptions/index.ts'
import type { EffectContext } from '../workflows/index.ts'
import { type Asked, definePlay, type Line, type Play } from './contract-workflow.ts'
import type { WorkflowScenario, WorkflowStage } from './workflow-contract.ts'

const play = definePlay('play')
/** Tries follow each other at once, as far as anything real can. */
const QUICKLY = { maxAttempts: 2, initialDelay: '1ms', maxDelay: '2ms' } as const

export const effectScenarios: readonly WorkflowScenario[] = [
  [
    'an effect is done after the commit, and the input it returns is applied',
    async ({ under, expect, until }) => {
      const seen: unknown[] = []
      await begin(under, play, ({ word }, { attempt, isRetry, idempotencyKey, workflow }) => {
        seen.push([word, attempt, isRetry, typeof idempotencyKey, workflow])
        return word === 'question' ? { id: 'a', say: ['answer'] } : undefined
      })
      await under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['question', 'remark'] })
      await until(async () => seen.length === 2 && (await words(under, 'a')).includes('answer'))
      const workflow = { type: 'play', id: 'a' }
      expect(seen.sort()).toEqual([
        ['question', 1, false, 'string', workflow],
        ['remark', 1, false, 'string', workflow],
      ])
      expect(await words(under, 'a')).toEqual(['one', 'answer'])
    },
  ],
  [
    'a transaction that fails asks for nothing',
    async ({ under, expect, until }) => {
      const seen: string[] = []
      await begin(under, play, ({ word }) => void seen.push(word))
      const failed = under.transaction(async (tx) => {
        await under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['never'] }, { tx })
        throw new Error('changed my mind')
      })
      await failed.catch(() => {})
      await under.transaction((tx) => under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['now'] }, { tx }))
      await until(() => seen.length > 0)
      expect(seen).toEqual(['now'])
    },
  ],
  [
    'an effect that fails is tried again with the same key, then is a dead letter; redriven it begins anew',
    async ({ under, expect, until }) => {
      const tries: [number, string][] = []
      let isMended = false
      await begin(under, play, (_, { attempt, idempotencyKey }) => {
        tries.push([attempt, idempotencyKey])
        if (!isMended) throw new Error('not now')
      })
      await under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['question'] })
      await until(async () => (await under.deadLetters.count({ status: 'dead' })) === 1)
      const [letter] = await under.deadLetters.list()
      expect([letter?.kind, letter?.owner, letter?.key, letter?.attempts]).toEqual(['effect', 'play', 'a', 2])
      isMended = true
      expect(await under.deadLetters.redrive(letter!.id)).toEqual(1)
      await until(() => tries.length === 3)
      expect(tries.map(([attempt]) => attempt)).toEqual([1, 2, 1])
      expect(new Set(tries.map(([, key]) => key)).size).toEqual(1)
      await until(async () => (await under.deadLetters.count({ status: 'dead' })) === 0)
    },
  ],
  [
    'a workflow hears of an effect that cannot be done: it ends, its key is free, and the letter is settled',
    async ({ under, expect, until }) => {
      await begin(under, play, () => {
        throw new GiveUp('never')
      })
      await under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['report this'], key: 'k' })
      await until(async () => (await under.workflows.query(play, 'a'))?.completed === true)
      expect(await words(under, 'a')).toEqual(['one', 'failed report this', 'end'])
      expect((await under.deadLetters.list()).map(({ status, attempts }) => [status, attempts])).toEqual([
        ['resolved', 1],
      ])
      expect((await under.workflows.execute(play, { id: 'b', say: ['one'], key: 'k' })).outcome).toEqual('accepted')
    },
  ],
  [
    'an answer that is rejected or too late ends its effect all the same',
    async ({ under, expect, until }) => {
      const seen: string[] = []
      await begin(under, play, ({ word }): Line => {
        seen.push(word)
        return word === 'no' ? { id: 'a', refuse: 'no' } : { id: 'b', say: ['too late'] }
      })
      await under.workflows.execute(play, { id: 'a', say: ['one'], ask: ['no'] })
      await under.workflows.execute(play, { id: 'b', say: ['end'], ask: ['late'] })
      await until(() => seen.length === 2)
      // Something that comes after both: had they been tried again, they would have come first.
      await under.workflows.execute(play, { id: 'a', say: ['two'], ask: ['last'] })
      await until(() => seen.includes('last'))
      expect([[...seen].sort(), await under.deadLetters.count()]).toEqual([['last', 'late', 'no'], 0])
      expect([await words(under, 'a'), await words(under, 'b')]).toEqual([['one', 'two'], ['end']])
    },
  ],
  [
    'ordered effects of an instance wait for each other, also over a retry; those of others do not',
    async ({ under, expect, until }) => {
      const ordered = definePlay('ordered', { orderedEffects: true })
      const seen: string[] = []
      await begin(under, ordered, ({ word }, { attempt }) => {
        if (word === 'a1' && attempt === 1) throw new Error('not yet')
        seen.push(word)
      })
      await under.workflows.execute(ordered, { id: 'a', say: ['one'], ask: ['a1', 'a2', 'a3'] })
      await under.workflows.execute(ordered, { id: 'b', say: ['one'], ask: ['b1'] })
      await until(() => seen.length === 4)
      expect(seen.filter((word) => word.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    },
  ],
  [
    'ordered effects wait behind a dead letter, and go on in order when it is redriven',
    async ({ under, expect, until }) => {
      const ordered = definePlay('ordered', { orderedEffects: true })
      const seen: string[] = []
      let isMended = false
      await begin(under, ordered, ({ word }) => {
        if (word === 'a1' && !isMended) throw new GiveUp('not like this')
        seen.push(word)
      })
      await under.workflows.execute(ordered, { id: 'a', say: ['one'], ask: ['a1', 'a2'] })
      await until(async () => (await under.deadLetters.count({ status: 'dead' })) === 1)
      await under.workflows.execute(ordered, { id: 'a', say: ['two'], ask: ['a3'] })
      await under.workflows.execute(ordered, { id: 'b', say: ['one'], ask: ['b1'] })
      await until(() => seen.length > 0)
      expect(seen).toEqual(['b1'])
      isMended = true
      await under.deadLetters.redrive({ owner: 'ordered' })
      await until(() => seen.length === 4)
      expect(seen).toEqual(['b1', 'a1', 'a2', 'a3'])
    },
  ],
  [
    'the end of an instance cancels the effects of earlier decisions, unless they are to run, and does those of the last one',
    async ({ under, expect, until }) => {
      const seen: string[] = []
      const handle = ({ word }: Asked) => void seen.push(word)
      const keeping = definePlay('keeping', { effectsOnCompletion: 'run' })
      const dropping = definePlay('dropping', { effectsOnCompletion: 'cancel' })
      const end = { say: ['end'] }
      under.workflows.register(keeping, { effects: { asked: handle } })
      under.workflows.register(dropping, { effects: { asked: handle } })
      await under.workflows.execute(keeping, { id: 'a', say: ['one'], ask: ['kept'] })
      await under.workflows.execute(keeping, { id: 'a', ...end })
      await under.workflows.execute(dropping, { id: 'a', say: ['one'], ask: ['dropped'] })
      await under.workflows.execute(dropping, { id: 'a', ...end, ask: ['of the end'] })
      await under.start()
      await until(() => seen.includes('kept') && seen.includes('of the end'))
      await under.workflows.execute(dropping, { id: 'b', say: ['one'], ask: ['last'] })
      await until(() => seen.includes('last'))
      expect([...seen].sort()).toEqual(['kept', 'last', 'of the end'])
    },
  ],
]

type Handle = (effect: Asked, context: EffectContext) => Line | undefined | ReturnType<() => void>

async function begin(under: WorkflowStage['under'], workflow: Play, handle: Handle): Promise<void> {
  under.workflows.register(workflow, { effects: { asked: { handle, retry: QUICKLY } } })
  await under.start()
}

async function words({ workflows }: WorkflowStage['under'], id: string): Promise<string[]> {
  return (await workflows.history(play, id)).map(({ payload }) => payload.word)
}
