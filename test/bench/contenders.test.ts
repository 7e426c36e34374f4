import { expect, it } from 'vitest'
import { toDatabase } from '../../bench/contenders/database.mjs'
import { createScope } from '../../bench/contenders/scope.mjs'

it('closes what a journey opened in reverse order, once', async () => {
  const scope = createScope()
  const closed: string[] = []
  const open = (name: string) => ({ name, close: async () => void closed.push(name) })
  expect((await scope.own(open('database'))).name).toBe('database')
  await scope.own(Promise.resolve(open('process')))
  await scope.close()
  await scope.close()
  expect(closed).toEqual(['process', 'database'])
})

it('names another database of the same server', () => {
  expect(toDatabase('postgres://me@db:5433/shop?ssl=true', 'bench_ours')).toBe(
    'postgres://me@db:5433/bench_ours?ssl=true',
  )
  expect(toDatabase('postgres://me@/postgres?host=%2Ftmp%2Fsocket', 'other')).toBe(
    'postgres://me@/other?host=%2Ftmp%2Fsocket',
  )
  expect(toDatabase('postgres://me@db', 'other')).toBe('postgres://me@db/other')
})
