import { expect, test } from 'vitest'
import { spread } from '../support/sequencer.ts'

test('files that wait are spread evenly among those that do not, each kind in its own order', () => {
  expect(spread(['A', 'B'], ['1', '2', '3', '4', '5', '6'])).toEqual(['1', 'A', '2', '3', '4', 'B', '5', '6'])
})

test('files that wait can all begin before the others end', () => {
  expect(spread(['A', 'B'], ['1', '2', '3', '4'], 0.5)).toEqual(['A', '1', 'B', '2', '3', '4'])
})

test('one kind alone keeps its order', () => {
  expect(spread([], ['b', 'a'])).toEqual(['b', 'a'])
  expect(spread(['b', 'a'], [])).toEqual(['b', 'a'])
})
