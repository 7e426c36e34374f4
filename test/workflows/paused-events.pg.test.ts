/** Events of the log that come while an instance is paused keep their order, among each other and before what comes later. */
import { expect, it } from 'vitest'
import { type Aftercommit, accept, defineWorkflow, GiveUp } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

const A = { type: 'diary', id: 'a' }
const trouble = { at: -1 }

const diary = defineWorkflow({
  type: 'diary',
  id: ({ id }: { id: string; n: number; anew?: boolean }) => id,
  initial: (): readonly number[] => [],
  evolve: (numbers, { n }: { type: 'noted'; n: number }) => [...numbers, n],
  decide(_, { id, n, anew = false }) {
    if (n === trouble.at) throw new GiveUp('a mistake')
    return accept([{ type: 'noted', n }], { continueAsNew: anew ? { id, n: n + 1 } : undefined })
  },
  on: {
    'day.passed': ({ aggregateId, payload }) => ({ id: aggregateId!, n: (payload as { n: number }).n }),
  },
})

/** So many processes, and a calendar that goes on with every call. */
async function openDiary(processes: number) {
  const { open, rows } = await openWorkflows()
  const all = Array.from({ length: processes }, () => open())
  for (const one of all) {
    one.workflows.register(diary)
    await one.start()
  }
  const ac = all[0]!
  await ac.workflows.execute(diary, { id: 'a', n: 0 })
  let day = 0
  return {
    ac,
    rows,
    async pass(days: number) {
      const events = Array.from({ length: days }, () => ({
        type: 'day.passed',
        aggregate: { type: 'calendar', id: 'a' },
        payload: { n: ++day },
      }))
      const emitted = await ac.transaction((tx) => tx.emit(events))
      return () => untilPassed(ac, emitted.at(-1)!.position)
    },
    noted: async () => (await ac.workflows.query(diary, 'a'))!.state,
  }
}

const untilPassed = (ac: Aftercommit, position: bigint) =>
  eventually(async () => (await ac.subscriptions.get('workflow:diary').status()).position >= position)

it('they follow each other when it is resumed, whoever takes them up, and what comes then follows them', async () => {
  const { ac, pass, noted } = await openDiary(3)
  await ac.workflows.pause(A)
  await (await pass(60))()
  expect(await noted()).toEqual([0])
  await ac.workflows.resume(A)
  await pass(20)
  await ac.workflows.pause(A)
  await (await pass(20))()
  await ac.workflows.resume(A)
  await pass(20)
  await eventually(async () => (await noted()).length === 121)
  expect(await noted()).toEqual(Array.from({ length: 121 }, (_, n) => n))
})

/** Days 1 to 4 came during a pause, and nothing can be made of the second. */
async function openBlocked() {
  const diaries = await openDiary(2)
  const { ac, pass } = diaries
  await ac.workflows.pause(A)
  await (await pass(4))()
  trouble.at = 2
  await ac.workflows.resume(A)
  const letter = await eventually(async () => (await ac.deadLetters.list({ status: 'dead' }))[0])
  return { ...diaries, letter }
}

it('one that nothing can be made of holds back the later ones until somebody has dealt with it', async () => {
  const { ac, pass, noted, rows, letter } = await openBlocked()
  await (await pass(2))()
  expect(await noted()).toEqual([0, 1])
  expect(await ac.deadLetters.list()).toMatchObject([{ id: letter.id, waiting: 4 }])
  trouble.at = -1
  await ac.deadLetters.redrive(letter.id)
  await eventually(async () => (await noted()).length === 7)
  expect(await noted()).toEqual([0, 1, 2, 3, 4, 5, 6])
  // From here on events are applied as they come.
  await eventually(async () => (await rows('deliveries')) === 0)
  await (await pass(1))()
  expect(await noted()).toHaveLength(8)
  expect(await rows('workflow_instances', 'holds')).toBe(0)
})

it("one that comes again while its dead letter waits is in nobody's way", async () => {
  const { ac, noted, letter, pass } = await openBlocked()
  await ac.subscriptions.get('workflow:diary').seek('start')
  await (await pass(1))()
  trouble.at = -1
  await ac.deadLetters.redrive(letter.id)
  await eventually(async () => (await noted()).length === 6)
  expect(await noted()).toEqual([0, 1, 2, 3, 4, 5])
})

it('a dead letter of one is for the next life as well', async () => {
  const { ac, letter } = await openBlocked()
  await ac.workflows.execute(diary, { id: 'a', n: 100, anew: true })
  expect(await ac.deadLetters.list()).toMatchObject([{ id: letter.id, status: 'dead' }])
  trouble.at = -1
  await ac.deadLetters.redrive(letter.id)
  const days = async () => (await ac.workflows.history(diary, 'a')).map(({ payload }) => payload.n)
  await eventually(async () => (await days()).length === 7)
  expect(await days()).toEqual([0, 1, 100, 101, 2, 3, 4])
})
