/** A method that returns a promise reports every fault through it, so that `.catch()` is enough for a caller. */
import { expect, it } from 'vitest'
import type { Aftercommit } from '../../src/index.ts'
import { openLog } from './support/open-log.ts'

const calls: Record<string, (ac: Aftercommit) => Promise<unknown>> = {
  'log.read': ({ log }) => log.read({ limit: 0 }),
  'log.list': ({ log }) => log.list({ limit: 0 }),
  'log.stream': ({ log }) => log.stream({ type: 'lamp', id: '1' }, { limit: 0 }),
  'log.correlated': ({ log }) => log.correlated('c', { limit: 0 }),
  'log.trace': ({ log }) => log.trace('nowhere'),
  'deadLetters.list': ({ deadLetters }) => deadLetters.list({ limit: 0 }),
  'deliveries.list': ({ deliveries }) => deliveries.list({ limit: 0 }),
  'deliveries.pause': ({ deliveries }) => deliveries.pause({ destination: '' }),
  'workflows.list': ({ workflows }) => workflows.list(undefined, { limit: 0 }),
  'workflows.timers': ({ workflows }) => workflows.timers({ limit: 0 }),
  'projections.list': ({ projections }) => projections.list('p', { limit: 0 }),
  'processed.deleteBefore': ({ processed }) => processed.deleteBefore(new Date(Number.NaN)),
  'schedules.add': ({ schedules }) => schedules.add({ id: 'a b', cron: '* * * * *' }),
  'search.query': ({ search }) => search.query('i', 'word', { limit: 0 }),
  'search.get': ({ search }) => search.get(undefined as never, 'id'),
  'search.remove': ({ search }) => search.remove(undefined as never, 'id'),
  'push.list': ({ push }) => push.list(''),
}

it.each(Object.entries(calls))('%s rejects a wrong argument instead of throwing', async (_, call) => {
  const { ac } = await openLog()
  let promise: Promise<unknown> | undefined
  expect(() => {
    promise = call(ac)
    promise.catch(() => {})
  }).not.toThrow()
  await expect(promise).rejects.toThrow(Error)
})
