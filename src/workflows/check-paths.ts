/** Where two JSON values differ. A place is named by its path; what is there only for whoever may see it. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { ExactNumber } from '../events/index.ts'

export interface DifferingPath {
  /** Such as `payload.items[3].price`. */
  readonly path: string
  /** What is stored there; left out where nothing is, or values were not asked for. */
  readonly recorded?: unknown
  /** What the code at hand makes of it; likewise. */
  readonly now?: unknown
}

/** More than anybody reads. */
const MOST_PATHS = 20

/** None when they are equal; at most 20. */
export function differingPaths(
  root: string,
  recorded: unknown,
  now: unknown,
  { values }: { values: boolean },
): DifferingPath[] {
  const found: DifferingPath[] = []
  const compare = (path: string, one: unknown, other: unknown): void => {
    if (found.length === MOST_PATHS || isDeepStrictEqual(one, other)) return
    const steps = stepsInto(one, other)
    if (steps.length === 0) {
      found.push({
        path,
        ...(values && one !== undefined && { recorded: one }),
        ...(values && other !== undefined && { now: other }),
      })
    }
    for (const step of steps) compare(path + formatStep(step), valueAt(one, step), valueAt(other, step))
  }
  compare(root, recorded, now)
  return found
}

/** The keys of either, where both are objects or both are lists; elsewhere they differ as a whole. */
function stepsInto(one: unknown, other: unknown): (string | number)[] {
  if (Array.isArray(one) && Array.isArray(other)) return [...Array(Math.max(one.length, other.length)).keys()]
  if (!isRecord(one) || !isRecord(other)) return []
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
}

function valueAt(holder: unknown, step: string | number): unknown {
  return Object.hasOwn(holder as object, step) ? Reflect.get(holder as object, step) : undefined
}

/** Keys that are not plain words are quoted, and cut. */
function formatStep(step: string | number): string {
  if (typeof step === 'number') return `[${step}]`
  if (/^[A-Za-z_$][\w$]{0,59}$/.test(step)) return `.${step}`
  return `[${JSON.stringify(step.length > 40 ? `${step.slice(0, 40)}…` : step)}]`
}
