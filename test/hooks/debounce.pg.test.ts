/** Changes that come while a reload is under way. */
import { expect, it } from 'vitest'
import { reloadHook } from '../../src/hooks/index.ts'
import { gate, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

it('a change that comes during a reload is followed by another one, also where that ends before its time', async () => {
  const { ac, emit } = await openSubscriptions()
  const [begun, answered] = [gate(), gate()]
  let loads = 0
  ac.hooks.add(
    reloadHook({
      name: 'settings',
      debounce: '500ms',
      async reload() {
        if (++loads !== 2) return
        begun.open()
        await answered.passed
      },
    }),
  )
  await ac.start()
  expect(loads).toBe(1)
  await emit('first')
  await begun.passed
  const { position } = await emit('second')
  await eventually(() => ac.hooks.status('settings').position! >= position)
  answered.open()
  await eventually(() => loads === 3)
})
