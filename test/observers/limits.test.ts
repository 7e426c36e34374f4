import { expect, test } from 'vitest'
import type { Settings } from '../../src/configuration/index.ts'
import type { ObserverConfig } from '../../src/observers/config/index.ts'
import { limitsOf } from '../../src/observers/rules.ts'

const FIFTY = { count: 50, perMs: 1_000 }

function limits(destinations: Settings['destinations'], ...sentTo: string[]) {
  const actions = sentTo.map((destination) => ({ prepared: { destination } }))
  const observer = { name: 'o', concurrency: null, rate: null, actions } as unknown as ObserverConfig
  return limitsOf({ destinations: { __proto__: null, ...destinations } } as unknown as Settings, [observer])
}

test('an origin is limited for every type of action that goes there, and a provider for its type', () => {
  const found = limits(
    { 'https://a.example': { concurrency: 2, rate: null }, smtp: { concurrency: null, rate: FIFTY } },
    ...['webhook https://b.example', 'search https://a.example', 'email smtp', 'push web'],
  )
  expect(found).toEqual([
    { destination: 'webhook https://a.example', concurrency: 2, rate: null, burst: null },
    { destination: 'search https://a.example', concurrency: 2, rate: null, burst: null },
    { destination: 'email smtp', concurrency: null, rate: 50, burst: 50 },
  ])
})

test('of an origin and its provider the origin counts', () => {
  const found = limits(
    { 'https://hooks.example': { concurrency: 1, rate: null }, slack: { concurrency: 9, rate: null } },
    ...['slack https://hooks.example', 'slack https://other.example'],
  )
  expect(found.map(({ destination, concurrency }) => [destination, concurrency])).toEqual([
    ['webhook https://hooks.example', 1],
    ['slack https://hooks.example', 1],
    ['slack https://other.example', 9],
  ])
})
