/** What must be true while an instance is paused, where several things are under way at once. */
import { expect, it } from 'vitest'
import { accept, defineWorkflow } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

interface Line {
  readonly id: string
  readonly word: string
  readonly ask?: readonly string[]
  readonly again?: Line
}

const play = defineWorkflow({
  type: 'play',
  id: ({ id }: Line) => id,
  initial: () => 0,
  evolve: (count, _: { type: 'said'; word: string }) => count + 1,
  decide: (_, { word, ask = [], again }) =>
    accept([{ type: 'said', word }], {
      effects: ask.map((asked) => ({ type: 'asked' as const, word: asked })),
      continueAsNew: again,
    }),
})

it('an answer that waits outlives the new life that another answer begins', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  const answers = new Map<string, (line: Line) => void>()
  ac.workflows.register(play, {
    effects: { asked: ({ word }) => new Promise<Line>((resolve) => answers.set(word, resolve)) },
  })
  await ac.start()
  await ac.workflows.execute(play, { id: 'a', word: 'one', ask: ['first', 'second'] })
  await eventually(() => answers.size === 2)
  await ac.workflows.pause({ type: 'play', id: 'a' })
  const held = async () => (await ac.workflows.timers()).length
  answers.get('first')!({ id: 'a', word: 'over', again: { id: 'a', word: 'anew' } })
  await eventually(async () => (await held()) === 1)
  answers.get('second')!({ id: 'a', word: 'late' })
  await eventually(async () => (await held()) === 2)
  await ac.workflows.resume({ type: 'play', id: 'a' })
  await eventually(async () => (await held()) === 0)
  const words = (await ac.workflows.history(play, 'a')).map(({ payload }) => payload.word)
  expect(words.sort()).toEqual(['anew', 'late', 'one', 'over'])
})

it('the time of a decision is read after its instance was free', async () => {
  const { open, sql, waiting } = await openWorkflows()
  const ac = open()
  const times: number[] = []
  const timed = defineWorkflow({
    type: 'timed',
    id: ({ id }: { id: string }) => id,
    initial: () => 0,
    evolve: (count, _: { type: 'came' }) => count + 1,
    decide(_, __, { now }) {
      times.push(now.getTime())
      return accept([{ type: 'came' }])
    },
  })
  ac.workflows.register(timed)
  await ac.workflows.execute(timed, { id: 'a' })
  // Somebody has the instance; two inputs come meanwhile, one in a transaction of the caller's.
  await sql.query('begin')
  await sql.query(`select aftercommit.workflow_load('timed', 'a', true, 0, 0, 0)`)
  const executed = [
    ac.workflows.execute(timed, { id: 'a' }),
    ac.transaction((tx) => ac.workflows.execute(timed, { id: 'a' }, { tx })),
  ]
  await eventually(async () => (await waiting()) === 2)
  const { rows } = await sql.query('select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as ms')
  await sql.query('commit')
  await Promise.all(executed)
  // Before that, the first input was decided on what the process remembers, which came to nothing.
  expect(times.slice(-2).map((ms) => ms >= rows[0].ms)).toEqual([true, true])
})
