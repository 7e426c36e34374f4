/**
 * The order of test files. Files that mostly wait, for a killed process, a restarted server or a lease, are spread evenly
 * among those that keep a core busy, so that workers beyond the number of cores have something to do. Within each kind
 * the longest come first, as far as the cache of an earlier run or the size of a file tells.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const WAITING = new Set(['host', 'guarantees'])

export class SpreadSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isWaiting = ({ project }: TestSpecification) => WAITING.has(project.name)
    const waiting = await super.sort(files.filter(isWaiting))
    const busy = await super.sort(files.filter((file) => !isWaiting(file)))
    return spread(waiting, busy, 0.8)
  }
}

/**
 * Both lists in their own order, in one list that keeps their proportion. `until` is the part of the other list in which
 * the first one is spread: a file that waits for a minute and comes last is waited for alone.
 */
export function spread<T>(one: readonly T[], other: readonly T[], until = 1): T[] {
  const place = (list: readonly T[], part: number) =>
    list.map((item, at) => ({ item, place: ((at + 0.5) / list.length) * part }))
  const placed = [...place(one, until), ...place(other, 1)]
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item)
}
