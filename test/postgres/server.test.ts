import { expect, test } from 'vitest'
import { assertServerVersion, type Queryable } from '../../src/postgres/index.ts'

const serverOf = (version: number) =>
  ({
    schema: '"s"',
    query: async () => ({ rows: [{ version: String(version) }], rowCount: 1 }),
  }) as unknown as Queryable

test('a server before 14 is refused by number, 14 and later are not', async () => {
  await expect(assertServerVersion(serverOf(130_020))).rejects.toMatchObject({ code: 'SERVER_TOO_OLD' })
  await expect(assertServerVersion(serverOf(130_020))).rejects.toThrow('PostgreSQL 13')
  await assertServerVersion(serverOf(140_000))
  await assertServerVersion(serverOf(190_001))
})
