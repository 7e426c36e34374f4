import { expect, it } from 'vitest'
import { parseJson } from '../../src/events/index.ts'
import { differingPaths } from '../../src/workflows/check-paths.ts'

const paths = (recorded: string, now: string, values = false) =>
  differingPaths('payload', parseJson(recorded), parseJson(now), { values })

it('names every place where two values differ, and nothing of what is there', () => {
  const recorded = '{"total":5,"items":[{"price":1},{"price":2}],"gone":null,"kept":{"a":[]}}'
  const now = '{"total":6,"items":[{"price":1},{"price":"2"},3],"new":1,"kept":{"a":[]}}'
  expect(paths(recorded, now)).toEqual(
    ['payload.total', 'payload.items[1].price', 'payload.items[2]', 'payload.gone', 'payload.new'].map((path) => ({
      path,
    })),
  )
})

it('shows values where they are asked for, and none where there is none', () => {
  expect(paths('{"a":1,"b":null}', '{"a":2,"c":{"d":3}}', true)).toEqual([
    { path: 'payload.a', recorded: 1, now: 2 },
    { path: 'payload.b', recorded: null },
    { path: 'payload.c', now: parseJson('{"d":3}') },
  ])
})

it('says nothing of equal values, and names the whole where the kinds differ', () => {
  expect(paths('{"b":[1,{"c":2}],"a":1}', '{"a":1,"b":[1,{"c":2}]}')).toEqual([])
  expect(paths('[]', '{}')).toEqual([{ path: 'payload' }])
  expect(paths('[1]', 'null')).toEqual([{ path: 'payload' }])
  expect(paths('9007199254740993', '9007199254740995')).toEqual([{ path: 'payload' }])
})

it('quotes and cuts odd keys, and stops after twenty', () => {
  expect(paths('{"a b":1,"__proto__":1}', '{}').map(({ path }) => path)).toEqual([
    'payload["a b"]',
    'payload.__proto__',
  ])
  expect(paths(`{"${'é'.repeat(100)}":1}`, '{}')[0]!.path).toBe(`payload["${'é'.repeat(40)}…"]`)
  expect(paths(`[${'1,'.repeat(99)}1]`, '[]')).toHaveLength(20)
})
