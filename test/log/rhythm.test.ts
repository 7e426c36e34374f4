import { describe, expect, test } from 'vitest'
import { createRhythm, RHYTHM, type Rhythm } from '../../src/log/rhythm.ts'

const NOTHING = { found: 0, blocked: false }
const FOUND = { found: 1, blocked: false }
const HOLE = { found: 0, blocked: true }

function armedAt(nowMs: number): Rhythm {
  const rhythm = createRhythm()
  rhythm.read(NOTHING, nowMs)
  rhythm.arming()
  rhythm.armed()
  return rhythm
}

describe('a reader that polls', () => {
  test('arms at once on a quiet system', () => {
    const rhythm = createRhythm()
    rhythm.read(NOTHING, 0)
    expect(rhythm.next(true, 0)).toEqual({ waitMs: 0, change: 'arm' })
  })

  test('goes on polling while it finds something too often for the bell to be worth it', () => {
    const rhythm = createRhythm()
    for (let i = 0; i < RHYTHM.armBelow; i++) rhythm.read(FOUND, i)
    expect(rhythm.next(true, RHYTHM.armBelow)).toEqual({ waitMs: RHYTHM.busyPollMs })
  })

  test('arms when one find fewer lies within the last second', () => {
    const rhythm = createRhythm()
    for (let i = 0; i < RHYTHM.armBelow; i++) rhythm.read(FOUND, i)
    expect(rhythm.next(true, 999).change).toBeUndefined()
    expect(rhythm.next(true, 1_000).change).toBe('arm')
  })

  test('takes a few reads that find much for the many that were put off', () => {
    const rhythm = createRhythm()
    for (let i = 0; i < 5; i++) rhythm.read({ found: 50, blocked: false }, i * 100)
    expect(rhythm.next(true, 500).change).toBeUndefined()
    // Where each finds one event, there is little to ring for.
    const quiet = createRhythm()
    for (let i = 0; i < 5; i++) quiet.read(FOUND, i * 100)
    expect(quiet.next(true, 500).change).toBe('arm')
  })

  test('waits a second before it arms again, so that it does not go to and fro', () => {
    const rhythm = armedAt(0)
    rhythm.disarmed(5_000)
    rhythm.read(NOTHING, 5_001)
    expect(rhythm.next(true, 5_999).change).toBeUndefined()
    expect(rhythm.next(true, 6_000).change).toBe('arm')
  })

  test('polls less often while nothing comes, but with a bell in view never slower than the slow poll', () => {
    const rhythm = createRhythm()
    rhythm.disarmed(0)
    const waits = Array.from({ length: 60 }, () => {
      rhythm.read(NOTHING, 10)
      return rhythm.next(true, 10).waitMs
    })
    expect(waits[0]).toBe(RHYTHM.busyPollMs)
    expect(waits).toEqual([...waits].sort((a, b) => a - b))
    expect(waits.at(-1)).toBe(RHYTHM.slowPollMs)
  })

  test('polls busily again as soon as something came', () => {
    const rhythm = createRhythm()
    rhythm.disarmed(0)
    for (let i = 0; i < 60; i++) rhythm.read(NOTHING, 10)
    expect(rhythm.next(true, 10).waitMs).toBe(RHYTHM.slowPollMs)
    rhythm.read(FOUND, 11)
    expect(rhythm.next(true, 11).waitMs).toBe(RHYTHM.busyPollMs)
  })

  test('never arms where nobody will ring, and backs off to the idle poll', () => {
    const rhythm = createRhythm()
    const answers = Array.from({ length: 200 }, (_, i) => {
      rhythm.read(NOTHING, i * 1_000)
      return rhythm.next(false, i * 1_000)
    })
    expect(answers.filter(({ change }) => change !== undefined)).toEqual([])
    expect(answers.at(-1)!.waitMs).toBe(RHYTHM.idlePollMs)
  })

  test('does not back off that far in front of a hole: the rollback that ends it rings nobody', () => {
    const rhythm = createRhythm()
    for (let i = 0; i < 200; i++) rhythm.read(HOLE, i)
    expect(rhythm.next(false, 200).waitMs).toBe(RHYTHM.slowPollMs)
  })
})

describe('a reader that arms', () => {
  test('polls busily at first, since some may still commit without ringing', () => {
    const rhythm = createRhythm()
    for (let i = 0; i < 60; i++) rhythm.read(NOTHING, 0)
    rhythm.arming()
    expect(rhythm.state).toBe('arming')
    expect(rhythm.next(true, 0)).toEqual({ waitMs: RHYTHM.busyPollMs })
  })

  test('gives up when the bell can no longer be heard', () => {
    const rhythm = createRhythm()
    rhythm.arming()
    expect(rhythm.next(false, 0).change).toBe('disarm')
  })
})

describe('a reader that is armed', () => {
  test('sleeps until the fallback poll', () => {
    const rhythm = armedAt(0)
    expect(rhythm.state).toBe('armed')
    expect(rhythm.next(true, 0)).toEqual({ waitMs: RHYTHM.fallbackPollMs })
  })

  test('polls in front of a hole', () => {
    const rhythm = armedAt(0)
    rhythm.read(HOLE, 1)
    expect(rhythm.next(true, 1).waitMs).toBe(RHYTHM.busyPollMs)
    for (let i = 0; i < 60; i++) rhythm.read(HOLE, 2)
    expect(rhythm.next(true, 2).waitMs).toBe(RHYTHM.slowPollMs)
  })

  test('stays armed up to the number of rings that polling would be cheaper than', () => {
    const rhythm = armedAt(0)
    for (let i = 0; i < RHYTHM.disarmAbove; i++) rhythm.rang(i)
    expect(rhythm.next(true, 500).change).toBeUndefined()
    rhythm.rang(500)
    expect(rhythm.next(true, 500)).toEqual({ waitMs: RHYTHM.busyPollMs, change: 'disarm' })
  })

  test('counts the rings of the last second only', () => {
    const rhythm = armedAt(0)
    for (let i = 0; i <= RHYTHM.disarmAbove; i++) rhythm.rang(0)
    expect(rhythm.next(true, 999).change).toBe('disarm')
    expect(rhythm.next(true, 1_000).change).toBeUndefined()
  })

  test('disarms when the bell can no longer be heard', () => {
    expect(armedAt(0).next(false, 0).change).toBe('disarm')
  })

  test('starts to count anew once it has disarmed', () => {
    const rhythm = armedAt(0)
    for (let i = 0; i <= RHYTHM.disarmAbove; i++) rhythm.rang(0)
    rhythm.disarmed(1)
    expect(rhythm.state).toBe('polling')
    rhythm.arming()
    rhythm.armed()
    expect(rhythm.next(true, 2).change).toBeUndefined()
  })
})
