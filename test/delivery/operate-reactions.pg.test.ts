import { expect, test } from 'vitest'
import type { Reaction } from '../../src/delivery/index.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'
import { work } from './support/open-delivering.ts'
import { gate, openOperating } from './support/open-operating.ts'

const never = () => new AbortController().signal

function asking(run: Reaction['run'], words: Partial<Reaction> = {}): Reaction {
  return {
    work: work(() => {}),
    eventId: 'evt-1',
    owner: 'shop',
    destination: '',
    tenant: '',
    key: null,
    priority: 0,
    run,
    payload: () => ({}),
    ...words,
  }
}

test('a slow call that began before it had a row is told when its row is cancelled, and its end changes nothing', async () => {
  const { deliveries, worker, rows, sql } = await openOperating()
  const one = await worker()
  one.register(work(() => {}))
  await eventually(async () => (await deliveries.names()).length === 1)
  const aborted = gate()
  const ended = gate()
  let reason: { code?: string } | undefined
  const { react, begin } = one.reactions()
  await begin()
  const kept = react(
    [
      asking(async ({ signal }) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason
          aborted.open()
        })
        await ended.opened
        throw new Error('too late')
      }),
    ],
    never,
  )
  await kept
  expect(await deliveries.count()).toMatchObject({ running: 1 })
  expect(await deliveries.cancel({ name: 'mail' })).toBe(1)
  await aborted.opened
  expect(reason?.code).toBe('CLAIM_LOST')
  ended.open()
  await one.service.stop()
  expect(await rows()).toBe(0)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

test('a call that waits for its turn while its name is paused is kept and not begun', async () => {
  const { deliveries, worker } = await openOperating()
  // No time passes, so that the second waits for its turn and for nothing else.
  const one = await worker({ concurrency: 1, clock: createTestClock() })
  one.register(work(() => {}))
  await eventually(async () => (await deliveries.names()).length === 1)
  const first = gate()
  const begun: string[] = []
  const call = (name: string, end: Promise<void>) =>
    asking(() => {
      begun.push(name)
      return end
    })
  const { react, begin } = one.reactions()
  await begin()
  const reacted = react([call('first', first.opened), call('second', Promise.resolve())], never)
  await deliveries.pause({ kind: 'effect', name: 'mail' })
  first.open()
  await reacted
  expect(begun).toEqual(['first'])
  expect(await deliveries.count()).toMatchObject({ paused: 1 })
})
