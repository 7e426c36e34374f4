import { expect, test } from 'vitest'
import { readCron } from '../../src/workflows/cron.ts'

/** Every time from one instant up to another, each found from the one before as a schedule does. */
async function timesOf(cron: string, zone: string, from: string, to: string): Promise<string[]> {
  const times = await readCron('x', cron, zone)
  const found: string[] = []
  for (let at = times.next(new Date(from)); at && at < new Date(to); at = times.next(at)) found.push(at.toISOString())
  return found
}

// In Berlin 02:00 to 03:00 does not exist on 29 March 2026, and comes twice on 25 October 2026, first at 00:00Z.
const SPRING = ['2026-03-28T00:00Z', '2026-03-31T00:00Z'] as const
const AUTUMN = ['2026-10-24T00:00Z', '2026-10-27T00:00Z'] as const

test('an hour of the day is the hour of the zone, before and after its clocks change', async () => {
  expect(await timesOf('0 9 * * *', 'Europe/Berlin', ...SPRING)).toEqual([
    '2026-03-28T08:00:00.000Z',
    '2026-03-29T07:00:00.000Z',
    '2026-03-30T07:00:00.000Z',
  ])
  expect(await timesOf('0 9 * * *', 'Europe/Berlin', ...AUTUMN)).toEqual([
    '2026-10-24T07:00:00.000Z',
    '2026-10-25T08:00:00.000Z',
    '2026-10-26T08:00:00.000Z',
  ])
})

test('a time that the day leaves out comes when the clocks have changed, once', async () => {
  expect(await timesOf('30 2 * * *', 'Europe/Berlin', ...SPRING)).toEqual([
    '2026-03-28T01:30:00.000Z',
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:30:00.000Z',
  ])
  expect(await timesOf('30 2 29 3 *', 'Europe/Berlin', ...SPRING)).toEqual(['2026-03-29T01:00:00.000Z'])
  expect(await timesOf('0,30 2,3 * * *', 'Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T12:00Z')).toEqual([
    '2026-03-29T01:00:00.000Z',
    '2026-03-29T01:30:00.000Z',
  ])
})

test('a time that the day has twice comes the first time alone', async () => {
  expect(await timesOf('30 2 * * *', 'Europe/Berlin', ...AUTUMN)).toEqual([
    '2026-10-24T00:30:00.000Z',
    '2026-10-25T00:30:00.000Z',
    '2026-10-26T01:30:00.000Z',
  ])
  expect(await timesOf('30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', '2026-11-03T00:00Z')).toEqual([
    '2026-11-01T05:30:00.000Z',
    '2026-11-02T06:30:00.000Z',
  ])
})

test('what comes every hour comes every hour, also when the clocks change', async () => {
  for (const [from, to] of [SPRING, AUTUMN]) {
    const times = await timesOf('0 * * * *', 'Europe/Berlin', from, to)
    const hours = times.map((at) => (Date.parse(at) - Date.parse(from)) / 3_600_000)
    expect(hours).toEqual(Array.from({ length: 71 }, (_, n) => n + 1))
  }
})

test('from whichever moment it is asked, the next time is the same: none is left out and none comes twice', async () => {
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe']) {
    for (const cron of ['30 2 * * *', '30 1 * * *', '*/20 * * * *', '30 1-3 * * *']) {
      for (const day of ['2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01']) {
        const from = Date.parse(`${day}T00:00Z`) - 12 * 3_600_000
        const to = from + 48 * 3_600_000
        const all = await timesOf(cron, zone, new Date(from).toISOString(), new Date(to).toISOString())
        const { next } = await readCron('x', cron, zone)
        const last = Date.parse(all.at(-1)!)
        for (let at = from; at < last; at += 17 * 60_000 + 321) {
          const first = all.find((time) => Date.parse(time) > at)
          expect(next(new Date(at))!.toISOString(), `${cron} ${zone} after ${new Date(at).toISOString()}`).toBe(first)
        }
      }
    }
  }
})
