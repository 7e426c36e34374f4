import { expect, it } from 'vitest'
import { createDecisions } from '../../src/workflows/check-decisions.ts'
import type { StoredObservation } from '../../src/workflows/check-statements.ts'
import { counter } from './support/fulfilment.ts'

const HISTORY = 2_000

it('looks at each recorded input a few times, not once per event of the history', () => {
  let looks = 0
  const observations = Array.from({ length: HISTORY }, (_, version): StoredObservation => {
    const seen = { inputType: null, inputId: null, input: { id: 'a' }, redacted: false, rejection: undefined }
    return {
      ...{ ...seen, outcome: 'accepted', events: 1, decidedAt: new Date(0) },
      get version() {
        looks++
        return version
      },
    }
  })
  const instance = { type: 'counter', id: 'a', version: HISTORY }
  const decisions = createDecisions({ workflow: counter as never, instance, observations, values: false })
  let decided = 0
  for (let version = 0; version < HISTORY; version++) {
    decided += decisions.decideAt({ version, position: BigInt(version) }, counter.initial()).count
    const event = { type: 'counter.counted', position: BigInt(version + 1), payload: { type: 'counted', by: 1 } }
    expect(decisions.compare(event)).toEqual([])
  }
  expect(decided).toBe(HISTORY)
  expect(looks).toBeLessThanOrEqual(3 * HISTORY)
})
