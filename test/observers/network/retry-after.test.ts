import { expect, it } from 'vitest'
import { parseRetryAfter } from '../../../src/observers/network/index.ts'

const now = new Date('2026-03-01T12:00:00Z')

it.each([
  ['5', 5_000],
  [' 120 ', 120_000],
  ['3600', 3_600_000],
  ['315360000', 86_400_000],
  ['99999999999999999999', 86_400_000],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['Sunday, 01-Mar-26 12:00:30 GMT', 30_000],
  ['Sun, 01 Mar 2036 12:00:00 GMT', 86_400_000],
])('honours Retry-After: %s, up to 24 hours', (value, ms) => expect(parseRetryAfter(value, now)).toBe(ms))

it.each([
  '0',
  '-1',
  '1.5',
  'soon',
  '',
  '1e9',
  'Sun, 01 Mar 2026 11:59:00 GMT',
  'Sun, 99 Foo 2026 99:99:99 GMT',
  undefined,
])('takes Retry-After: %s as not having asked', (value) => expect(parseRetryAfter(value, now)).toBeUndefined())
