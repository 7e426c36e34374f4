/**
 * The functions of a workflow are synchronous. TypeScript says so; in plain JavaScript an async `isTerminal` would complete
 * every instance at its first event, because a promise counts as true. So each answer is checked where it is given.
 */
import { checkAnswer } from '../runtime/index.ts'

/** Must answer with a value. */
const NEEDED = ['id', 'initial', 'evolve', 'isTerminal']
/** May answer `undefined`, which means none, or is refused with a reason of its own. */
const OPTIONAL = ['decide', 'uniqueKey', 'onDeadLetter', 'destination']
/** Groups of functions, and whether they may answer `undefined`. */
const GROUPS = { on: true, snapshots: false, observe: true }

/** The same options, with functions that refuse an answer that cannot be used. */
export function withCheckedAnswers<Options extends { readonly type: string }>(options: Options): Options {
  const checked: Record<string, unknown> = { ...options }
  const wrap = (from: object, name: string, shown: string, optional: boolean) => {
    const own: unknown = Reflect.get(from, name)
    if (typeof own !== 'function') return own
    const rules = { what: `\`${shown}\` of workflow "${options.type}"`, so: 'nothing was written', optional }
    return function (this: unknown, ...args: unknown[]) {
      return checkAnswer(Reflect.apply(own, this, args), rules)
    }
  }
  for (const name of NEEDED) if (name in options) checked[name] = wrap(options, name, name, false)
  for (const name of OPTIONAL) if (name in options) checked[name] = wrap(options, name, name, true)
  for (const [group, optional] of Object.entries(GROUPS)) {
    const own: unknown = Reflect.get(options, group)
    if (typeof own !== 'object' || own === null) continue
    const functions = Object.keys(own).map((name) => [name, wrap(own, name, shownIn(group, name), optional)])
    checked[group] = Object.fromEntries(functions)
  }
  return checked as Options
}

function shownIn(group: string, name: string): string {
  return group === 'on' ? `on['${name}']` : `${group}.${name}`
}
