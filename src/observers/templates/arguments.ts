/** Which argument of a filter is which, and which of them are known before there is any event. */
import { closest } from '../../events/index.ts'
import type { Filter } from './filter.ts'
import type { Filters } from './filters.ts'
import type { Argument, FilterCall } from './pipeline.ts'
import type { Code, Fail } from './scan.ts'
import { Refusal } from './template-error.ts'

export function findFilter(filters: Filters, { name, offset }: FilterCall, fail: Fail): Filter {
  const filter = filters.get(name)
  if (filter !== undefined) return filter
  const advice = `There are ${[...filters.keys()].join(', ')}.`
  throw fail(offset, new Refusal(`there is no filter "${name}"`, advice, closest(name, filters.keys())))
}

/** The arguments in the order the filter takes them; undefined for one that was left out. */
export function orderArguments(filter: Filter, call: FilterCall, fail: Fail): (Code | undefined)[] {
  const { parameters } = filter
  const ordered: (Code | undefined)[] = []
  for (const [index, argument] of call.args.entries()) {
    const at = argument.name === undefined ? index : indexOfName(filter, argument, fail)
    if (ordered[at] !== undefined)
      throw fail(argument.code.offset, new Refusal('an argument is given twice', 'Keep one.'))
    if (parameters !== undefined && at >= parameters.length) throw fail(call.offset, wrongCount(filter))
    ordered[at] = argument.code
  }
  for (let at = 0; at < filter.required; at++) {
    if (ordered[at] === undefined) throw fail(call.offset, wrongCount(filter))
  }
  return Array.from(ordered)
}

function indexOfName({ name, parameters }: Filter, argument: Argument, fail: Fail): number {
  const at = parameters?.indexOf(argument.name ?? '') ?? -1
  if (at !== -1) return at
  const advice = parameters === undefined ? 'Give its arguments by position.' : `It takes ${parameters.join(' and ')}.`
  throw fail(argument.code.offset, new Refusal(`filter "${name}" has no argument "${argument.name}"`, advice))
}

function wrongCount({ name, parameters, required }: Filter): Refusal {
  const most = parameters?.length
  const least = required === 0 ? '' : `at least ${required} `
  const takes =
    most === undefined || required < most ? `${least}${most === undefined ? '' : `at most ${most} `}` : `${most} `
  const names = parameters === undefined || parameters.length === 0 ? '' : `: ${parameters.join(', ')}`
  const advice = most === 0 ? 'Remove the brackets.' : `It takes ${takes.trim()}${names}.`
  return new Refusal(`filter "${name}" has the wrong number of arguments`, advice)
}

/**
 * The value of a literal, so that a wrong zone or currency is found when the template is loaded. A whole number becomes
 * a number, as the writer of a filter expects, where CEL would make a bigint of it.
 */
export function readLiteral({ source }: Code): string | number | boolean | undefined {
  const text = /^(?:'([^'\\\n]*)'|"([^"\\\n]*)")$/.exec(source)
  if (text !== null) return text[1] ?? text[2]
  if (source === 'true' || source === 'false') return source === 'true'
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(source) ? Number(source) : undefined
}
