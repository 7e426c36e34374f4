import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { LazySignal } from '../../src/runtime/index.ts'

it('any number of calls may listen to one signal without a warning of Node', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => warnings.push(name)
  process.on('warning', onWarning)
  const { signal } = new LazySignal()
  for (let n = 0; n < 40; n++) signal.addEventListener('abort', () => {})
  // Node warns on the next turn of the event loop. A second warning tells that the first would have been heard.
  process.emitWarning('the last one', 'TestWarning')
  while (!warnings.includes('TestWarning')) await sleep(1)
  process.off('warning', onWarning)
  expect(warnings).toEqual(['TestWarning'])
})

it('a signal that is first read after the abort is aborted with the first reason', () => {
  const lazy = new LazySignal()
  lazy.abort('first')
  lazy.abort('second')
  expect(lazy.signal.reason).toBe('first')
})
