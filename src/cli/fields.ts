/** One thing at length, for the `show` verbs: a name and a value per line, then JSON under a title. */

import { printable } from '../printable.ts'
import { toJsonText } from './json.ts'
import type { Output } from './output.ts'

/** A field that is null is left out. */
export function printFields(fields: readonly (readonly [name: string, value: string | null])[], output: Output): void {
  for (const [name, value] of fields) {
    if (value !== null) output.data(`  ${output.colors.dim(name.padEnd(12))} ${printable(value)}`)
  }
}

export function printJson(title: string, value: unknown, { colors, data }: Output): void {
  data(`\n${colors.bold(title)}`)
  for (const line of toJsonText(value, { layOut: true }).split('\n')) data(`  ${printable(line)}`)
}
