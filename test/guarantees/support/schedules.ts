/**
 * Every way in which the steps of two writers can fall between the statements of a reader. The steps of the writers
 * keep their order; each falls before one of the reader's first `moments` statements, or after all of them.
 */
import type pg from 'pg'
import type { LogObjects } from '../../../src/log/frontier-statements.ts'
import { createHandReader, type Messenger, oneByOne } from './by-hand.ts'

const SCRIPTS = {
  'the first commits last': ['first takes', 'second takes', 'second commits', 'first commits'],
  'the first rolls back last': ['first takes', 'second takes', 'second commits', 'first rolls back'],
} as const

type Script = keyof typeof SCRIPTS
type Step = (typeof SCRIPTS)[Script][number]

/** One read without a hole and two with one: more than it takes to see a hole, wait for it and pass it. */
const MOMENTS = 7

export interface Players {
  readonly reader: pg.Client
  readonly first: pg.Client
  readonly second: pg.Client
  readonly objects: LogObjects
}

export interface Outcome {
  readonly schedule: string
  readonly read: readonly bigint[]
  readonly committed: readonly bigint[]
}

export interface Game {
  readonly script: Script
  /** The reader is busy with an older hole, which is dead, as the writers come. */
  readonly behindHole: boolean
  /** Changes what the reader sends, to see what a careless reader loses. */
  readonly spoil?: (messenger: Messenger) => Messenger
}

export async function playSchedules(players: Players, game: Game): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const moments of risingMoments(SCRIPTS[game.script].length)) outcomes.push(await playOne(players, game, moments))
  return outcomes
}

export function isRight({ read, committed }: Outcome): boolean {
  return read.length === committed.length && read.every((position, i) => position === committed[i])
}

async function playOne(
  { reader, first, second, objects }: Players,
  { script, behindHole, spoil = (messenger) => messenger }: Game,
  moments: readonly number[],
): Promise<Outcome> {
  const steps: readonly Step[] = SCRIPTS[script]
  const committed: bigint[] = []
  const taken: Record<string, bigint> = {}
  let statement = 0
  let played = 0

  async function act(step: Step): Promise<void> {
    const [who, what] = [step.startsWith('first') ? 'first' : 'second', step.slice(step.indexOf(' ') + 1)]
    const sql = who === 'first' ? first : second
    if (what === 'takes') {
      await sql.query('begin')
      taken[who] = await appendOne(sql)
    } else if (what === 'commits') {
      await sql.query('commit')
      committed.push(taken[who]!)
    } else await sql.query('rollback')
  }
  const actUpTo = async (moment: number) => {
    while (played < steps.length && moments[played]! <= moment) await act(steps[played++]!)
  }

  const { rows } = await reader.query(
    'select case when is_called then last_value else 0 end as last from aftercommit.positions',
  )
  if (behindHole)
    for (const step of ['first takes', 'first rolls back', 'second takes', 'second commits'] as const) await act(step)
  const messenger = spoil(oneByOne(reader, () => actUpTo(statement++)))
  const hand = createHandReader(messenger, objects, BigInt(rows[0].last))
  while (statement < MOMENTS) await hand.round()
  await actUpTo(MOMENTS)
  // Nobody is left: one round to see what is there, one to look past a hole.
  for (let i = 0; i < 3; i++) await hand.round()
  const schedule = steps.map((step, i) => `${step} at ${moments[i]}`).join(', ')
  return { schedule, read: hand.read, committed: committed.sort((a, b) => (a < b ? -1 : 1)) }
}

async function appendOne(sql: pg.Client): Promise<bigint> {
  const { rows } = await sql.query(`select aftercommit.emit('game.played', null, null, '{}') as position`)
  return BigInt(rows[0].position)
}

function* risingMoments(count: number, from = 0): Generator<number[]> {
  if (count === 0) yield []
  else for (let at = from; at <= MOMENTS; at++) for (const rest of risingMoments(count - 1, at)) yield [at, ...rest]
}
