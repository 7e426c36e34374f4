/** A database whose answers get lost: what was asked for happens, or does not, and the caller only sees a dead connection. */
import { createDatabase, type Database } from '../../../src/postgres/index.ts'

export interface Loss {
  /** Statements that contain it. */
  readonly of: string
  readonly times: number
  /** Whether the server got to do it. */
  readonly after: 'the answer' | 'the question'
}

export function lossyDatabase(url: string, loss: Loss): Database & { readonly lost: number } {
  const database = createDatabase({ database: url, connectTimeoutMs: 5_000 })
  let lost = 0
  const query: Database['query'] = async (text: string, values?: never) => {
    const isLost = text.includes(loss.of) && lost < loss.times
    if (isLost) lost++
    if (isLost && loss.after === 'the question') throw connectionLost()
    const result = await database.control.query(text, values)
    if (isLost) throw connectionLost()
    return result as never
  }
  const transaction: Database['transaction'] = async (fn, options) => {
    const isLost = loss.of === 'transaction' && lost < loss.times
    if (isLost) lost++
    if (isLost && loss.after === 'the question') throw connectionLost()
    const result = await database.transaction(fn, options)
    if (isLost) throw connectionLost()
    return result
  }
  return Object.defineProperty({ ...database, transaction, control: { ...database.control, query } }, 'lost', {
    get: () => lost,
  }) as Database & { readonly lost: number }
}

function connectionLost(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}
