import { Refusal } from './template-error.ts'
import { kindOfValue } from './text.ts'

export interface Filter {
  readonly name: string
  /** The names of its arguments; undefined for a registered one, which takes them by position and any number of them. */
  readonly parameters: readonly string[] | undefined
  /** How many arguments it cannot do without. */
  readonly required: number
  readonly apply: (value: unknown, args: readonly unknown[], maxBytes: number) => unknown
  /** Finds mistakes in arguments that stand in the template as literals; undefined where one is not known yet. */
  readonly check?: (args: readonly unknown[]) => void
}

export function wrongKind(filter: string, wanted: string, value: unknown): Refusal {
  return new Refusal(`filter "${filter}" takes ${wanted}, and was given ${kindOfValue(value)}`, 'Convert it first.')
}
