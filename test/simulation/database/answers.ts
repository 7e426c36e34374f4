/** Forms of answers. */
import type { Answer } from './statements.ts'

export function rowsOf(rows: Record<string, unknown>[]): Answer {
  return { rows, rowCount: rows.length }
}

/** One row with one value, as functions and questions answer. */
export function valueAs(name: string, value: unknown): Answer {
  return rowsOf([{ [name]: value }])
}

/** No rows come back; so many were changed. */
export function changed(rowCount: number): Answer {
  return { rows: [], rowCount }
}

/** An error as the server sends it. */
export function sqlError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
