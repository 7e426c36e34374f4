import { toWellFormed } from './well-formed.ts'

/** A name as it may stand in a message: quoted, escaped, on one line and never long, whatever it holds. */
export function quoted(name: unknown): string {
  if (typeof name !== 'string') return name === null ? 'null' : `a value of type ${typeof name}`
  const short = name.length > 60 ? `${name.slice(0, 60)}…` : name
  return JSON.stringify(toWellFormed(short))
}
