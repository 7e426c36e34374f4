/** The lanes that effects and timers go into, as numbers. Few and never removed, so each is asked for once. */
import type { Queryable } from '../postgres/index.ts'
import { type LaneNumbers, selectLane } from './statements.ts'
import type { StepWrite } from './store.ts'

export interface LaneBook {
  /** Without a promise once they are known: the common case costs no turn of the event loop. */
  numbersFor(type: string, write: Pick<StepWrite, 'effects'>): LaneNumbers | Promise<LaneNumbers>
}

export function createLaneBook(db: Queryable): LaneBook {
  const known = new Map<string, number>()

  function find(kind: string, name: string, destination: string): number | Promise<number> {
    const key = JSON.stringify([kind, name, destination])
    return known.get(key) ?? ask(key, kind, name, destination)
  }

  async function ask(key: string, kind: string, name: string, destination: string): Promise<number> {
    const lane = await selectLane(db, kind, name, destination)
    known.set(key, lane)
    return lane
  }

  return {
    numbersFor(type, { effects }) {
      const timers = find('timer', type, '')
      const wanted = effects.map(({ name, destination }) => find('effect', name, destination))
      if (typeof timers === 'number' && wanted.every((lane) => typeof lane === 'number'))
        return { timers, effects: wanted as number[] }
      return Promise.all([timers, ...wanted]).then(([first, ...rest]) => ({ timers: first, effects: rest }))
    },
  }
}
