import fc from 'fast-check'
import type pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { ExactNumber, JsonError, parseJson, stringifyJson } from '../../src/events/index.ts'
import { connect, serverUrl } from '../support/database.ts'
import { payloads } from './event-samples.ts'

describe.each([18, 14] as const)('JSON on Postgres %i', (major) => {
  let client: pg.Client

  beforeEach(async () => {
    client = await connect(serverUrl(major))
  })

  const stored = async (text: string) => {
    const { rows } = await client.query<{ text: string }>('select ($1::text)::jsonb::text as text', [text])
    return rows[0]!.text
  }

  it('comes back from Postgres as the value that was written', async () => {
    await fc.assert(
      fc.asyncProperty(payloads, async (payload) => {
        const written = stringifyJson(payload)
        expect(parseJson(await stored(written))).toEqual(asNumeric(parseJson(written)))
      }),
      { numRuns: 300 },
    )
  })

  it.each(['9'.repeat(131_072), `0.${'0'.repeat(16_382)}1`, '1e131071', '1e-16383', '-0', '0e500'])(
    'keeps numbers up to the limits of Postgres (%#)',
    async (text) => {
      const written = stringifyJson(new ExactNumber(text))
      expect(written).toBe(text)
      await stored(written)
    },
  )

  it.each(['9'.repeat(131_073), `0.${'0'.repeat(16_383)}1`, '1e131072', '1e-16384'])(
    'refuses numbers that Postgres would refuse or round (%#)',
    async (text) => {
      expect(() => stringifyJson(new ExactNumber(text))).toThrow(JsonError)
      const kept = await stored(text).catch(() => 'refused')
      expect(kept).not.toBe(text)
    },
  )

  it.each(['"\\u0000"', '"\\ud800"'])('refuses what Postgres would refuse: %s', async (text) => {
    await expect(stored(text)).rejects.toThrow()
    expect(() => stringifyJson(JSON.parse(text))).toThrow(JsonError)
  })
})

/** What Postgres makes of numbers: no negative zero, and exponents written out, which makes 1e400 a whole number. */
function asNumeric(value: unknown): unknown {
  if (Object.is(value, -0)) return 0
  if (value instanceof ExactNumber) return value.text === '1e400' ? 10n ** 400n : value
  if (Array.isArray(value)) return value.map(asNumeric)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, asNumeric(member)]))
}
