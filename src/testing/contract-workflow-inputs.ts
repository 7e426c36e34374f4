/** What an input leads to: all of it or nothing, one after the other, each once. */
import { codeOf, definePlay, type Line } from './contract-workflow.ts'
import type { WorkflowScenario, WorkflowStage } from './workflow-contract.ts'

const play = definePlay('play')

export const inputScenarios: readonly WorkflowScenario[] = [
  [
    'what is accepted is a history with versions, and the state follows from it',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const first = await workflows.execute(play, { id: 'a', say: ['one', 'two'] })
      expect(first).toEqual({ outcome: 'accepted', events: [said('one'), said('two')] })
      await workflows.execute(play, { id: 'a', say: ['three'] })
      const history = await workflows.history(play, 'a')
      expect(
        history.map(({ type, version, aggregateId, payload }) => [type, version, aggregateId, payload.word]),
      ).toEqual([
        ['play.said', 1, 'a', 'one'],
        ['play.said', 2, 'a', 'two'],
        ['play.said', 3, 'a', 'three'],
      ])
      expect(await workflows.query(play, 'a')).toEqual({
        state: { words: ['one', 'two', 'three'] },
        version: 3,
        completed: false,
      })
      expect((await workflows.stateAt(play, 'a', 2))?.state).toEqual({ words: ['one', 'two'] })
      expect([await workflows.stateAt(play, 'a', 4), await workflows.query(play, 'b')]).toEqual([undefined, undefined])
      const rest = await workflows.history(play, 'a', { from: 2, limit: 1 })
      expect(rest.map(({ version }) => version)).toEqual([2])
    },
  ],
  [
    'the events of one input share a correlation that is the first of them',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      await workflows.execute(play, { id: 'a', say: ['one', 'two'] })
      const [first, second] = await workflows.history(play, 'a')
      expect([first?.metadata.correlationId, second?.metadata.correlationId]).toEqual([first?.id, first?.id])
    },
  ],
  [
    'what is rejected leaves nothing, not even an instance',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const line = { id: 'a', refuse: 'no', say: ['one'], key: 'k' }
      expect(await workflows.execute(play, line)).toEqual({ outcome: 'rejected', reason: 'no' })
      expect([await workflows.query(play, 'a'), (await workflows.list()).items]).toEqual([undefined, []])
      expect((await workflows.execute(play, { id: 'b', say: ['one'], key: 'k' })).outcome).toEqual('accepted')
    },
  ],
  [
    'what comes after the end finds the instance completed',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      await workflows.execute(play, { id: 'a', say: ['one', 'end'] })
      expect(await workflows.execute(play, { id: 'a', say: ['two'] })).toEqual({ outcome: 'completed' })
      expect((await workflows.query(play, 'a'))?.completed).toEqual(true)
      expect((await workflows.history(play, 'a')).length).toEqual(2)
    },
  ],
  [
    'fifty inputs at once to one instance give the versions 1 to 50',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const say = Array.from({ length: 50 }, (_, n) => workflows.execute(play, { id: 'a', say: [`${n}`] }))
      await Promise.all(say)
      const history = await workflows.history(play, 'a')
      expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1))
      expect(new Set(history.map(({ payload }) => payload.word)).size).toEqual(50)
    },
  ],
  [
    'of twenty starts with one unique key one is accepted, and the others hear who has it; its end frees the key',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const start = (n: number) => workflows.execute(play, { id: `i${n}`, say: ['one'], key: 'k' })
      const ended = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => start(n)))
      const accepted = ended.findIndex(({ status }) => status === 'fulfilled')
      const refused = ended.filter((one) => one.status === 'rejected').map(({ reason }) => [reason.code, reason.holder])
      expect(refused).toEqual(Array(19).fill(['UNIQUE_KEY_TAKEN', `i${accepted}`]))
      await workflows.execute(play, { id: `i${accepted}`, say: ['end'] })
      expect((await start(20)).outcome).toEqual('accepted')
    },
  ],
  [
    'an instance that ends with its first input has no unique key any more',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      await workflows.execute(play, { id: 'a', say: ['end'], key: 'k' })
      expect((await workflows.list(play)).items.map(({ uniqueKey }) => uniqueKey)).toEqual([null])
      expect((await workflows.execute(play, { id: 'b', say: ['one'], key: 'k' })).outcome).toEqual('accepted')
    },
  ],
  [
    'an input without a key keeps the key, one with another key takes it in place of the first',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      await workflows.execute(play, { id: 'a', say: ['one'], key: 'k' })
      await workflows.execute(play, { id: 'a', say: ['two'] })
      expect(await codeOf(workflows.execute(play, { id: 'b', say: ['one'], key: 'k' }))).toEqual('UNIQUE_KEY_TAKEN')
      await workflows.execute(play, { id: 'a', say: ['three'], key: 'l' })
      expect((await workflows.execute(play, { id: 'b', say: ['one'], key: 'k' })).outcome).toEqual('accepted')
      expect(await codeOf(workflows.execute(play, { id: 'c', say: ['one'], key: 'l' }))).toEqual('UNIQUE_KEY_TAKEN')
    },
  ],
  [
    'an input with an id is taken once, and answers later as the first time, also when it was rejected',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const twice = async (line: Line) => [
        await workflows.execute(play, line, { inputId: line.say?.[0] ?? 'refused' }),
        await workflows.execute(play, { ...line, say: ['other'] }, { inputId: line.say?.[0] ?? 'refused' }),
      ]
      const accepted = { outcome: 'accepted', events: [said('one')] }
      expect(await twice({ id: 'a', say: ['one'] })).toEqual([accepted, accepted])
      const rejected = { outcome: 'rejected', reason: 'no' }
      expect(await twice({ id: 'b', refuse: 'no' })).toEqual([rejected, rejected])
      await workflows.execute(play, { id: 'a', say: ['end'] })
      expect(await workflows.execute(play, { id: 'a', say: ['x'] }, { inputId: 'one' })).toEqual(accepted)
      expect(await words({ workflows }, 'a')).toEqual(['one', 'end'])
    },
  ],
  [
    'with a transaction it happens when that commits, all of it, or never',
    async ({ under, expect }) => {
      const { workflows } = under
      workflows.register(play)
      const failed = under.transaction(async (tx) => {
        await workflows.execute(play, { id: 'a', say: ['one'], key: 'k' }, { tx, inputId: '1' })
        throw new Error('changed my mind')
      })
      expect(await failed.catch((error: Error) => error.message)).toEqual('changed my mind')
      expect(await workflows.query(play, 'a')).toEqual(undefined)
      await under.transaction(async (tx) => {
        await workflows.execute(play, { id: 'a', say: ['two'] }, { tx, inputId: '1' })
        await workflows.execute(play, { id: 'a', say: ['three'] }, { tx })
        await workflows.execute(play, { id: 'b', say: ['four'], key: 'k' }, { tx })
        expect(await workflows.query(play, 'b')).toEqual(undefined)
      })
      expect([await words(under, 'a'), await words(under, 'b')]).toEqual([['two', 'three'], ['four']])
    },
  ],
  [
    'a decision that cannot be written writes nothing',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      const silent = workflows.execute(play, { id: 'a', ask: ['one'] })
      expect(await codeOf(silent)).toEqual('BAD_DECISION')
      const line = { id: 'a', say: ['later'] }
      const later = [1, 2].map(() => ({ ms: 1, key: 'same', line }))
      expect(await codeOf(workflows.execute(play, { id: 'a', say: ['one'], later }))).toEqual('BAD_DECISION')
      expect(await workflows.query(play, 'a')).toEqual(undefined)
    },
  ],
  [
    'an event that the code cannot read is an error that names the instance and the version',
    async ({ under: { workflows }, expect }) => {
      let isBroken = false
      const fragile = definePlay('fragile', {
        evolve({ words }, { word }) {
          if (isBroken && word === 'two') throw new TypeError('what is two?')
          return { words: [...words, word] }
        },
      })
      workflows.register(fragile)
      await workflows.execute(fragile, { id: 'a', say: ['one', 'two', 'three'] })
      isBroken = true
      const error = await workflows.query(fragile, 'a').catch((thrown: unknown) => thrown)
      const { code, workflowType, workflowId, version } = error as Record<string, unknown>
      expect([code, workflowType, workflowId, version]).toEqual(['UNDECODABLE', 'fragile', 'a', 2])
    },
  ],
  [
    'a snapshot and what came after it give the same state as the whole history',
    async ({ under: { workflows }, expect }) => {
      const snapped = definePlay('snapped', { snapshots: { every: 3 } })
      workflows.register(snapped)
      const all: string[] = []
      for (let n = 1; n <= 11; n++) {
        all.push(`${n}`)
        await workflows.execute(snapped, { id: 'a', say: [`${n}`] })
        expect((await workflows.query(snapped, 'a'))?.state).toEqual({ words: all })
        expect((await workflows.stateAt(snapped, 'a', 1))?.state).toEqual({ words: ['1'] })
      }
    },
  ],
  [
    'a new life has a fresh state and the same id, and its versions go on',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      await workflows.execute(play, { id: 'a', say: ['one'], later: [{ ms: 1e9, line: { id: 'a', say: ['never'] } }] })
      await workflows.execute(play, { id: 'a', say: ['two'], again: { id: 'a', say: ['three'] } })
      expect(await workflows.query(play, 'a')).toEqual({ state: { words: ['three'] }, version: 3, completed: false })
      expect((await workflows.stateAt(play, 'a', 2))?.state).toEqual({ words: [] })
      expect([await words({ workflows }, 'a'), await workflows.timers()]).toEqual([['one', 'two', 'three'], []])
    },
  ],
  [
    'lists go by the last event, newest first, page by page',
    async ({ under: { workflows }, expect }) => {
      const other = definePlay('other')
      workflows.register(play)
      workflows.register(other)
      for (const id of ['a', 'b', 'c']) await workflows.execute(play, { id, say: ['one'], key: id })
      await workflows.execute(other, { id: 'd', say: ['end'] })
      await workflows.execute(play, { id: 'a', say: ['two'] })
      const first = await workflows.list(undefined, { limit: 2 })
      const second = await workflows.list(undefined, { limit: 2, after: first.next })
      expect([...first.items, ...second.items].map(({ type, id }) => `${type}/${id}`)).toEqual([
        'play/a',
        'other/d',
        'play/c',
        'play/b',
      ])
      expect(second.next).toEqual(undefined)
      const [a] = (await workflows.list(play, { limit: 1 })).items
      expect([a?.id, a?.version, a?.uniqueKey, a?.completed, a?.completedAt]).toEqual(['a', 2, 'a', false, null])
      const [d] = (await workflows.list(other)).items
      expect([d?.completed, d?.completedAt]).toEqual([true, d?.lastEventAt])
    },
  ],
  [
    'a workflow is known by its type, once',
    async ({ under: { workflows }, expect }) => {
      workflows.register(play)
      expect(await codeOf((async () => workflows.register(play))())).toEqual('BAD_OPTION')
      expect(await codeOf(workflows.execute(definePlay('play'), { id: 'a', say: ['one'] }))).toEqual('BAD_OPTION')
      expect(await codeOf(workflows.execute(definePlay('other'), { id: 'a', say: ['one'] }))).toEqual(
        'UNKNOWN_WORKFLOW',
      )
      expect((await workflows.executeDynamic('play', { id: 'a', say: ['one'] })).outcome).toEqual('accepted')
      expect(await codeOf(workflows.executeDynamic('ploy', { id: 'a' }))).toEqual('UNKNOWN_WORKFLOW')
      expect(workflows.registered()).toEqual(['play'])
    },
  ],
]

function said(word: string) {
  return { type: 'said', word }
}

async function words({ workflows }: Pick<WorkflowStage['under'], 'workflows'>, id: string): Promise<string[]> {
  return (await workflows.history(play, id)).map(({ payload }) => payload.word)
}
