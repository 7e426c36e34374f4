import { expect, it } from 'vitest'
import { collectingLogger } from '../../support/logger.ts'
import { failureOf, prepare, requestFor } from './support.ts'

it('a log action writes one line, whatever the event holds', async () => {
  const { logger, lines } = collectingLogger()
  const action = prepare('log', { level: 'warn', message: 'order of {{ name }}' }, { logger })
  const result = await action.run(requestFor({ payload: { name: 'Ada\n2026-01-01 ERROR forged\u001b[31m' } }))
  expect(result).toMatchObject({ actionType: 'log', success: true })
  expect(lines).toEqual(['warn order of Ada\\u000a2026-01-01 ERROR forged\\u001b[31m'])
})

it('a log action says which event it was unless told otherwise', async () => {
  const { logger, lines } = collectingLogger()
  const action = prepare('log', {}, { logger })
  await action.run(requestFor({ payload: { secret: 'canary' } }))
  expect(lines).toEqual(['info order.placed evt-1'])
  expect(action.preview(requestFor()).content).toEqual({ level: 'info', message: 'order.placed evt-1' })
})

it('a log action with a template that cannot be compiled is refused', async () => {
  expect(await failureOf(() => prepare('log', { message: '{{ x | nofilter }}' }))).toMatchObject({ path: ['message'] })
  expect(() => prepare('log', { level: 'loud' })).toThrow()
})
