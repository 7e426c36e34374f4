import { expect, test } from 'vitest'
import { Handlers } from '../../src/delivery/handlers.ts'
import type { Work } from '../../src/delivery/index.ts'

const work = (kind: Work['kind'], name: string) => ({ kind, name }) as Work

test('a second handler of the same kind and name is refused, and the first stays', () => {
  const works = new Handlers()
  const first = work('effect', 'order/charge')
  works.add(first)
  works.add(work('timer', 'order/charge'))
  const again = () => works.add(work('effect', 'order/charge'))
  expect(again).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
  expect(again).toThrow('The effect "order/charge" is registered twice in this process')
  expect(works.get({ kind: 'effect', name: 'order/charge' })).toBe(first)
  works.remove('effect', 'order/charge')
  expect(again).not.toThrow()
})
