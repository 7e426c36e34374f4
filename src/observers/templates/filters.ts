/** The filters of a template, built in or registered, by name. */
import { AftercommitError } from '../../errors.ts'
import { currency, currencyUnits } from './currency.ts'
import { date } from './date.ts'
import type { Filter } from './filter.ts'
import { Refusal } from './template-error.ts'
import { defaultTo, json, jsonPretty, length, lower, maskEmail, trim, upper, urlencode } from './text-filters.ts'

/** A map rather than an object: no name reaches a prototype. */
export type Filters = ReadonlyMap<string, Filter>

/** A filter written in TypeScript. It gets null or undefined for an absent value and must answer at once. */
export type CustomFilter = (value: unknown, ...args: unknown[]) => unknown

const BUILT_IN: readonly Filter[] = [
  ...[upper, lower, trim, length, defaultTo, json, jsonPretty, currency, currencyUnits, date, urlencode, maskEmail],
]

export function createFilters(custom: Readonly<Record<string, CustomFilter>> = {}): Filters {
  const filters = new Map(BUILT_IN.map((filter) => [filter.name, filter]))
  for (const [name, call] of Object.entries(custom)) {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw badFilter(name, 'has a name that no template could write', 'Use a word.')
    if (filters.has(name)) throw badFilter(name, 'is built in and cannot be replaced', 'Choose another name.')
    if (typeof call !== 'function') throw badFilter(name, 'is not a function', 'Give a function of the value.')
    filters.set(name, registered(name, call))
  }
  return filters
}

function registered(name: string, call: CustomFilter): Filter {
  return {
    name,
    parameters: undefined,
    required: Math.max(0, call.length - 1),
    apply: (value, args) => {
      const result = callFilter(name, call, value, args)
      if (!(result instanceof Promise)) return result
      // Nobody waits for the answer; a late refusal must not become an unhandled rejection.
      result.catch(() => {})
      throw new Refusal(`filter "${name}" answers with a promise`, 'Make it synchronous.')
    },
  }
}

/** What a filter throws may quote the value, so it stays in the cause. */
function callFilter(name: string, call: CustomFilter, value: unknown, args: readonly unknown[]): unknown {
  try {
    return call(value, ...args)
  } catch (cause) {
    throw new Refusal(`filter "${name}" threw an error`, 'The cause has it.', undefined, cause)
  }
}

function badFilter(name: string, reason: string, advice: string): AftercommitError {
  const shown = JSON.stringify(name.slice(0, 60))
  return new AftercommitError('BAD_OPTION', `Filter ${shown} ${reason}, so no filter was registered. ${advice}`)
}
