import { describe, expect, test } from 'vitest'
import { toQueryable } from '../../src/postgres/index.ts'

describe('what is not a transaction', () => {
  class Knex {
    raw() {}
  }

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['A string', 'postgres://user:secret@host/db'],
    ['A function', () => {}],
    ['class Object', { query() {} }],
    ['class Knex', new Knex()],
  ])('%s is refused with a list of what is accepted', (described, source) => {
    const attempt = () => toQueryable(source, '"s"')
    expect(attempt).toThrow(expect.objectContaining({ code: 'NOT_A_TRANSACTION' }))
    expect(attempt).toThrow(described)
    expect(attempt).toThrow(/own transaction, pg .*postgres\.js.*Drizzle.*Kysely.*Prisma/)
    expect(attempt).not.toThrow('secret')
  })

  test('an object without a prototype is refused like any other', () => {
    expect(() => toQueryable(Object.create(null), '"s"')).toThrow(
      expect.objectContaining({ code: 'NOT_A_TRANSACTION' }),
    )
  })
})
