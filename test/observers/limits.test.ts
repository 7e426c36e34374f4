import { expect, test } from 'vitest'
import type { Settings } from '../../src/configuration/index.ts'
import type { ObserverConfig } from '../../src/observers/config/index.ts'
import { limitsOf } from '../../src/observers/rules.ts'

const FIFTY = { count: 50, perMs: 1_000 }
const NONE = { concurrency: null, rate: null, burst: null }

/** What is written down for these settings and an observer that sends to all of these. */
function limits(destinations: Settings['destinations'], sentTo: readonly string[], words: object = {}) {
  const actions = sentTo.map((destination) => ({ prepared: { destination } }))
  const observer = { name: 'o', concurrency: null, rate: null, actions, ...words } as unknown as ObserverConfig
  return limitsOf({ destinations: { __proto__: null, ...destinations } } as unknown as Settings, [observer])
}

test('an origin is limited for every type of action that goes there, and a provider for its type', () => {
  const found = limits({ 'https://a.example': { ...NONE, concurrency: 2 }, smtp: { ...NONE, rate: FIFTY } }, [
    ...['webhook https://b.example', 'search https://a.example', 'email smtp', 'push web'],
  ])
  expect(found).toEqual([
    { ...NONE, destination: 'webhook https://a.example', concurrency: 2 },
    { ...NONE, destination: 'webhook https://b.example' },
    { ...NONE, destination: 'search https://a.example', concurrency: 2 },
    { destination: 'email smtp', concurrency: null, rate: 50, burst: 50 },
    { ...NONE, destination: 'push web' },
    { ...NONE, destination: 'https://a.example', concurrency: 2 },
  ])
})

test('of an origin and its provider the origin counts', () => {
  const found = limits({ 'https://hooks.example': { ...NONE, concurrency: 1 }, slack: { ...NONE, concurrency: 9 } }, [
    'slack https://hooks.example',
    'slack https://other.example',
  ])
  expect(found.map(({ destination, concurrency }) => [destination, concurrency])).toEqual([
    ['webhook https://hooks.example', 1],
    ['slack https://hooks.example', 1],
    ['slack https://other.example', 9],
    ['https://hooks.example', 1],
  ])
})

test('a word of a workflow is limited by itself, with a burst of its own where one is given', () => {
  const card = { concurrency: 3, rate: { count: 600, perMs: 60_000 }, burst: 4 }
  expect(limits({ 'card payments': card }, [])).toEqual([
    { destination: 'card payments', concurrency: 3, rate: 10, burst: 4 },
  ])
})

test('an observer with limits of its own is a destination, in place of those that it sends to', () => {
  expect(limits({}, ['webhook https://a.example'], { concurrency: 1 })).toEqual([
    { ...NONE, destination: 'observer o', concurrency: 1 },
  ])
})
