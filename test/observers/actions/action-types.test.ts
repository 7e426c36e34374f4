import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { ActionType } from '../../../src/observers/action.ts'
import { createActionTypes, findActionType } from '../../../src/observers/actions/index.ts'
import { failureOf } from './support.ts'

const own: ActionType = {
  type: 'fax',
  schema: z.strictObject({}),
  defaultRetry: 'local',
  prepare: () => {
    throw new Error('not called')
  },
}

describe('the types of actions', () => {
  it('are those that do something, each with a schema an editor can be told of', () => {
    const types = createActionTypes()
    const known = ['cache', 'custom', 'database', 'email', 'log', 'push', 'search', 'slack', 'sms', 'webhook']
    expect([...types.keys()].sort()).toEqual(known)
    for (const [name, { schema, type }] of types) {
      expect(type).toBe(name)
      const described = z.toJSONSchema(schema, { target: 'draft-4', io: 'input', unrepresentable: 'any' })
      expect(described).toMatchObject({ type: 'object', additionalProperties: false })
      expect(schema.safeParse({ nonsense: 1 }).success).toBe(false)
    }
  })

  it('tell services from what is ours, for the default policy of retries', () => {
    const services = [...createActionTypes().values()].filter(({ defaultRetry }) => defaultRetry === 'service')
    expect(services.map(({ type }) => type).sort()).toEqual(['cache', 'email', 'push', 'slack', 'sms', 'webhook'])
  })

  it('can be added to, and not replaced', async () => {
    expect(findActionType(createActionTypes([own]), 'fax')).toBe(own)
    for (const type of ['webhook', 'sms']) {
      expect(await failureOf(() => createActionTypes([{ ...own, type }]))).toMatchObject({ code: 'OB012' })
    }
  })

  it('suggest what was probably meant', async () => {
    const error = await failureOf(() => findActionType(createActionTypes(), 'webhok'))
    expect(error).toMatchObject({ code: 'OB012', path: ['type'], message: expect.stringContaining('"webhook"') })
    expect(await failureOf(() => findActionType(createActionTypes(), 'toString'))).toMatchObject({ code: 'OB012' })
  })

  it('refuse what is not of their shape', async () => {
    for (const wrong of [null, { ...own, type: 'Fax!' }, { ...own, schema: {} }, { ...own, prepare: undefined }])
      expect(await failureOf(() => createActionTypes([wrong as ActionType]))).toMatchObject({ code: 'OB012' })
  })
})
