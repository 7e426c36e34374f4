/** Programs that a machine may lack. In CI that is a failure; elsewhere the tests that need one are skipped aloud. */
import { findProgram, howToGet, isCI } from '../../scripts/programs.mjs'

/** True when tests that need the program should run. `untested` completes "… is NOT tested in this run". */
export function hasProgram(name: string, untested: string): boolean {
  if (findProgram(name) !== undefined) return true
  const missing = `${name} is not installed (${howToGet(name)})`
  if (isCI()) throw new Error(missing)
  console.warn(`${missing}: ${untested} is NOT tested in this run`)
  return false
}
