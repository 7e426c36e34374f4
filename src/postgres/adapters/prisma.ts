import type { Parameter } from '../queryable.ts'
import type { Adapter } from './adapter.ts'
import { hasMethods, isObject, property } from './adapter.ts'

interface PrismaSession {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<never[]>
  $executeRawUnsafe(text: string, ...values: unknown[]): Promise<number>
}

/**
 * Prisma: the client or the client of an interactive transaction. It counts changed rows and returns rows by different
 * methods, and refuses to read a column of type void.
 */
export const prismaAdapter: Adapter = {
  library: 'Prisma (client or the client of $transaction)',
  accepts: (source) => hasMethods(source, '$queryRawUnsafe', '$executeRawUnsafe'),
  isOutside: (source) => hasMethods(source, '$connect'),
  inside: 'the client that `$transaction(async (tx) => …)` gives',
  toQuery: (source) => async (text, values) => {
    const session = source as PrismaSession
    if (returnsRows(text)) {
      const rows = await session.$queryRawUnsafe(text, ...asText(values))
      return { rows, rowCount: rows.length }
    }
    return { rows: [], rowCount: await session.$executeRawUnsafe(text, ...asText(values)) }
  },
  identityKey(source) {
    const engine = property(source, '_engine')
    return isObject(engine) ? engine : source
  },
}

/** Its engines bind by declared type and our statements declare text, so booleans become text as well. */
function asText(values: readonly Parameter[] = []): (string | null)[] {
  return values.map((value) => (value === null ? null : String(value)))
}

function returnsRows(text: string): boolean {
  return !/^\s*(insert|update|delete|merge|set|notify|lock)\b/i.test(text) || /\breturning\b/i.test(text)
}
