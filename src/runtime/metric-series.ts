import { AftercommitError } from '../errors.ts'

/**
 * The series of one metric: a cell of numbers per set of label values. Looking a cell up builds a key; whoever is on a
 * hot path looks it up once and keeps it.
 */
export interface SeriesSet<Cell> {
  /** Creates the cell on first use. Refuses missing and unknown labels. */
  get(labels: Labels): Cell
  entries(): Iterable<readonly [labels: readonly (readonly [string, string])[], cell: Cell]>
}

export type Labels = Readonly<Record<string, string | number>>

export function createSeries<Cell>(metric: string, labelNames: readonly string[], create: () => Cell): SeriesSet<Cell> {
  const cells = new Map<string, Cell>()

  const keyOf = (labels: Labels): string => {
    const given = Object.keys(labels)
    const values = labelNames.map((name) => (Object.hasOwn(labels, name) ? labels[name] : undefined))
    if (given.length !== labelNames.length || values.includes(undefined)) {
      throw new AftercommitError(
        'BAD_OPTION',
        `Metric ${metric} has the labels [${labelNames.join(', ')}] and was given [${given.join(', ')}]. Pass each.`,
      )
    }
    return JSON.stringify(values.map(String))
  }

  return {
    get(labels) {
      let key = keyOf(labels)
      // Labels that come from data could grow without end, and with them memory here and in Prometheus.
      if (!cells.has(key) && cells.size >= MOST_SERIES) key = JSON.stringify(labelNames.map(() => 'other'))
      let cell = cells.get(key)
      if (cell === undefined) {
        cell = create()
        cells.set(key, cell)
      }
      return cell
    },
    *entries() {
      for (const key of [...cells.keys()].sort()) {
        const values = JSON.parse(key) as string[]
        yield [labelNames.map((name, index) => [name, values[index]!] as const), cells.get(key)!] as const
      }
    },
  }
}

const MOST_SERIES = 1000
