/** A paused instance stands still: what comes meanwhile waits, and nothing of it is lost. */
import { codeOf, definePlay, type Line } from './contract-workflow.ts'
import type { WorkflowScenario } from './workflow-contract.ts'

const play = definePlay('play')
const A = { type: 'play', id: 'a' }
/** Longer than any scenario takes. */
const FAR = { ms: 3_600_000, key: 'k', line: { id: 'a', say: ['three'] } }
const QUICKLY = { maxAttempts: 2, initialDelay: '1ms', maxDelay: '2ms' } as const

export const pauseScenarios: readonly WorkflowScenario[] = [
  [
    'a paused instance takes nothing and wakes for nothing until it is resumed',
    async ({ under, expect, until }) => {
      const { workflows } = under
      workflows.register(play)
      await under.start()
      await workflows.execute(play, { id: 'a', say: ['one'] })
      expect([await workflows.pause(A), await workflows.pause(A)]).toEqual([true, false])
      expect(await codeOf(workflows.execute(play, { id: 'a', say: ['no'] }))).toEqual('WORKFLOW_PAUSED')
      await workflows.resume(A)
      await workflows.execute(play, { id: 'a', say: ['two'], later: [FAR] })
      await workflows.pause(A)
      expect((await workflows.timers()).map(({ held }) => held)).toEqual([true])
      expect([await workflows.resume(A), await workflows.resume(A)]).toEqual([true, false])
      expect((await workflows.timers()).map(({ held }) => held)).toEqual([false])
      await workflows.execute(play, { id: 'a', say: ['end'] })
      await until(async () => (await workflows.timers()).length === 0)
      expect(await workflows.pause(A)).toEqual(false)
    },
  ],
  [
    'an effect that fails while its instance is paused is tried again when it is resumed, not before',
    async ({ under, expect, until }) => {
      const { workflows } = under
      const seen: string[] = []
      let isPaused = false
      const handle = async ({ word }: { word: string }) => {
        seen.push(word)
        if (seen.length > 1) return
        isPaused = await workflows.pause(A)
        throw new Error('not now')
      }
      workflows.register(play, { effects: { asked: { handle, retry: QUICKLY } } })
      await under.start()
      await workflows.execute(play, { id: 'a', say: ['one'], ask: ['question'] })
      await until(() => isPaused)
      // Of another instance, a while later: had the first been tried again, it would have come before.
      const later = { ms: 300, line: { id: 'b', say: ['two'], ask: ['other'] } }
      await workflows.execute(play, { id: 'b', say: ['one'], later: [later] })
      await until(() => seen.includes('other'))
      expect(seen).toEqual(['question', 'other'])
      await workflows.resume(A)
      await until(() => seen.length === 3)
      expect([seen, await under.deadLetters.count()]).toEqual([['question', 'other', 'question'], 0])
    },
  ],
  [
    'what came while it was paused is for the next life, where a new one begins first',
    async ({ under, expect, until }) => {
      const { workflows } = under
      const handle = async (): Promise<Line> => {
        await workflows.pause(A)
        return { id: 'a', say: ['late'] }
      }
      workflows.register(play, { effects: { asked: handle } })
      await under.start()
      await workflows.execute(play, { id: 'a', say: ['one'], ask: ['question'] })
      const words = async () => (await workflows.history(play, 'a')).map(({ payload }) => payload.word)
      await until(async () => (await workflows.timers()).length === 1 || (await words()).length === 2)
      expect(await words()).toEqual(['one'])
      await workflows.resume(A)
      await workflows.execute(play, { id: 'a', say: ['over'], again: { id: 'a', say: ['anew'] } })
      await until(async () => (await words()).includes('late'))
      expect((await words()).filter((word) => word !== 'late')).toEqual(['one', 'over', 'anew'])
    },
  ],
]
