import { describe, expect, it } from 'vitest'
import type { DeliveryPause, DestinationState } from '../../src/delivery/index.ts'
import { deliveryFindings } from '../../src/delivery/inspect-findings.ts'
import { sparingly } from '../../src/delivery/inspect-metrics.ts'
import { createTestClock } from '../../src/runtime/index.ts'

const now = new Date('2026-01-31T12:00:00Z')
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000)

const NOTHING = { orphans: [], pauses: [], destinations: [], now }

const destination: DestinationState = {
  destination: 'https://erp.example',
  concurrency: null,
  rate: null,
  burst: null,
  circuit: 'closed',
  failures: 0,
  openedAt: null,
  openUntil: null,
  restingUntil: null,
  paused: false,
  who: null,
  reason: null,
  running: 0,
  waiting: 7,
}

describe('the doctor', () => {
  it('is content where every name has a worker and no circuit is open for long', () => {
    const open = { ...destination, circuit: 'open', openedAt: minutesAgo(9) } as const
    const findings = deliveryFindings({ ...NOTHING, destinations: [destination, open] })
    expect(findings.map(({ level }) => level)).toEqual(['ok', 'ok', 'ok'])
    expect(findings[2]?.message).toBe('1 open, none for long')
  })

  it('warns of a name that was paused because its destination is gone, and not of what people paused', () => {
    const byAda: DeliveryPause = { kind: 'effect', name: 'fax', who: 'ada', reason: null, at: minutesAgo(90) }
    expect(deliveryFindings({ ...NOTHING, pauses: [byAda] })[1]).toMatchObject({
      level: 'ok',
      message: '1 name is paused, by a person',
    })
    const gone: DeliveryPause = {
      ...byAda,
      kind: 'action',
      name: 'erp/call',
      who: 'aftercommit',
      reason: 'its destination said that it is gone',
    }
    expect(deliveryFindings({ ...NOTHING, pauses: [byAda, gone] }).filter(({ level }) => level !== 'ok')).toEqual([
      {
        level: 'warning',
        check: 'pauses',
        message:
          'The action "erp/call" has been paused for 1 h 30 min: its destination said that it is gone. What it is to do waits.',
        fix: 'Correct its address or remove it; then: aftercommit deliveries resume erp/call --kind action',
      },
    ])
  })

  it('warns of work that nobody does, and names the command that ends it', () => {
    const orphan = { kind: 'effect', name: "it's mail", count: 3, oldest: minutesAgo(5) } as const
    expect(deliveryFindings({ ...NOTHING, orphans: [orphan] })).toMatchObject([
      {
        level: 'warning',
        message: 'No process works on effect "it\'s mail": 3 to do, the oldest for 5 min.',
        fix: expect.stringContaining(`--name 'it'\\''s mail'`),
      },
      { level: 'ok' },
      { level: 'ok' },
    ])
  })

  it('warns of a circuit that has been open for ten minutes, also between two probes', () => {
    const open = { ...destination, circuit: 'half-open', openedAt: minutesAgo(10), failures: 12 } as const
    expect(deliveryFindings({ ...NOTHING, destinations: [open] })).toMatchObject([
      { level: 'ok' },
      { level: 'ok' },
      {
        level: 'warning',
        message: expect.stringContaining('open for 10 min, after 12 failures in a row; 7 wait'),
        fix: expect.stringContaining('--destination https://erp.example'),
      },
    ])
  })
})

describe('a look that is shared', () => {
  it('is taken once a second at most, and not again while it goes on', async () => {
    const clock = createTestClock()
    let looks = 0
    const ends: (() => void)[] = []
    const look = sparingly(clock, () => {
      looks++
      return new Promise<number>((resolve) => ends.push(() => resolve(looks)))
    })
    const first = [look(), look()]
    await clock.advance(5_000)
    first.push(look())
    ends[0]!()
    expect(await Promise.all(first)).toEqual([1, 1, 1])
    // It took five seconds, so the next one is not due for 95.
    await clock.advance(94_000)
    expect(await look()).toBe(1)
    await clock.advance(1_000)
    const second = look()
    ends[1]!()
    expect(await second).toBe(2)
    await clock.advance(999)
    expect(await look()).toBe(2)
    await clock.advance(1)
    const third = look()
    ends[2]!()
    expect(await third).toBe(3)
  })

  it('is taken again after one that failed', async () => {
    const clock = createTestClock()
    let looks = 0
    const look = sparingly(clock, async () => {
      if (++looks === 1) throw new Error('away')
      return looks
    })
    await expect(look()).rejects.toThrow('away')
    await clock.advance(1_000)
    expect(await look()).toBe(2)
  })
})
