/** Rendering for one event. What fails here is the event's or the template's doing, so nothing is sent or repeated. */
import { AftercommitError } from '../../errors.ts'
import type { CompiledText } from '../action.ts'
import { ObserverError } from '../observer-error.ts'

/** Runs `render`; errors of templates and of JSON become OB003. */
export function rendering<T>(what: string, render: () => T): T {
  try {
    return render()
  } catch (error) {
    if (error instanceof ObserverError || !(error instanceof AftercommitError)) throw error
    throw new ObserverError('OB003', `${what} was not sent: ${error.message}`, { cause: error })
  }
}

/** What a template without holes renders, known before there is an event. It looks at no scope, so it gets none. */
export function constantText(template: CompiledText): string | undefined {
  return template.isConstant ? template.render(undefined as never) : undefined
}

export function unusable(what: string, problem: string): ObserverError {
  return new ObserverError('OB003', `${what} was not sent: ${problem}. Correct the template or the data it is given.`)
}
