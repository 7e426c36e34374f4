import { describe, expect, test } from 'vitest'
import { formatDuration, toMs } from '../../src/runtime/index.ts'

describe('toMs', () => {
  test.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['1.005s', 1005],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['0s', 0],
    ['PT5M', 300_000],
    ['PT1H30M', 5_400_000],
    ['PT0.25S', 250],
    ['P1D', 86_400_000],
    ['P1DT12H', 129_600_000],
    ['36500d', 36_500 * 86_400_000],
  ])('%s is %d ms', (text, ms) => {
    expect(toMs(text, 'timeout')).toBe(ms)
  })

  test.each([
    '',
    '5',
    '5 min',
    '5min',
    '5 s',
    ' 5s',
    '5s ',
    '5S',
    '-5s',
    '+5s',
    '1h30m',
    '.5s',
    '5.s',
    '1e3s',
    'NaNs',
    'Infinitys',
    'P',
    'PT',
    'P1DT',
    'P1M',
    'P1Y',
    'P1W',
    'PT-5M',
    'PT1.5H',
    'pt5m',
    'PT5',
    '٣s',
    '5s\n',
  ])('%j is refused', (text) => {
    expect(() => toMs(text, 'timeout')).toThrow(expect.objectContaining({ code: 'BAD_DURATION' }))
  })

  test.each([5000, null, undefined, {}, ['5s']])('%j, which is not even text, is refused', (value) => {
    expect(() => toMs(value as string, 'timeout')).toThrow(expect.objectContaining({ code: 'BAD_DURATION' }))
  })

  test('the error names the setting, shows the value and how to write one', () => {
    expect(() => toMs('5 min', 'retry.initialDelay')).toThrow(
      /^retry\.initialDelay is "5 min", .*"250ms", "30s".*"PT5M"/,
    )
  })

  test('an error does not repeat a long value in full', () => {
    expect(() => toMs('x'.repeat(500), 'timeout')).toThrow(/^timeout is "x{40}…"/)
  })

  test('a duration no Date could hold is refused', () => {
    expect(() => toMs('36501d', 'retention')).toThrow(/retention is "36501d", which is more than 100 years/)
    expect(() => toMs(`${'9'.repeat(400)}d`, 'retention')).toThrow(/more than 100 years/)
  })

  test('less than a millisecond is rounded up to one, so that no interval becomes zero', () => {
    expect(toMs('0.01ms', 'poll')).toBe(1)
  })
})

test.each([
  [0, '0 ms'],
  [250.4, '250 ms'],
  [999.7, '1 s'],
  [1500, '1.5 s'],
  [9960, '10 s'],
  [40_000, '40 s'],
  [59_600, '1 min'],
  [330_000, '5 min 30 s'],
  [3_599_600, '1 h'],
  [8_100_000, '2 h 15 min'],
  [86_390_000, '1 d'],
  [3 * 86_400_000 + 4 * 3_600_000, '3 d 4 h'],
  [-1500, '-1.5 s'],
])('%d ms is shown as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
