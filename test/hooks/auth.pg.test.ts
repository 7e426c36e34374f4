/** Sessions and tokens: what happens to them reaches every instance through the log. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/events/index.ts'
import { toAuthRequest } from '../../src/hooks/auth.ts'
import { type AuthInput, revocationHook } from '../../src/hooks/index.ts'
import { openLog } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { ear, gate, openHooks } from './support/open-hooks.ts'

describe('emitAuth', () => {
  it('appends an auth event, catalogue or not, in a transaction or by itself', async () => {
    const { ac } = await openLog({ events: defineEvents({ 'order.placed': z.object({}) }) })
    const { id } = await ac.emitAuth({ type: 'login', userId: 'ada', clientId: 'web', ip: '10.0.0.1' })
    const stored = await ac.log.get(id)
    expect(stored).toMatchObject({ type: 'auth.login', payload: { user_id: 'ada', client_id: 'web', ip: '10.0.0.1' } })
    expect(stored!.metadata.userId).toBe('ada')
    const rolledBack = ac.transaction(async (tx) => {
      await ac.emitAuth({ type: 'logout', sessionId: 's1' }, { tx })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    expect(await ac.log.list({ on: ['auth.*'] })).toHaveLength(1)
  })

  it('keeps ids of sessions and users out of what is printed', async () => {
    const { ac } = await openLog()
    const { id } = await ac.emitAuth({ type: 'session_created', userId: 'ada', sessionId: 'session-1' })
    const stored = await ac.log.get(id)
    expect(stored!.aggregateType).toBe('auth')
    expect(JSON.stringify(stored)).not.toMatch(/ada|session-1/)
  })

  it.each<[string, AuthInput]>([
    ['a type that nobody knows', { type: 'hacked' as never }],
    ['a revocation that names nothing', { type: 'token_revoked', userId: 'ada' }],
    ['a session without a name', { type: 'session_revoked', sessionId: '' }],
    ['a user that is not text', { type: 'login', userId: 7 as never }],
  ])('refuses %s', (_, auth) => {
    expect(() => toAuthRequest(auth)).toThrow('Nothing was emitted')
  })

  it('reaches hooks by its type', async () => {
    const { ac } = await openHooks()
    const { handle, heard } = ear()
    ac.hooks.add({ name: 'auth', types: ['auth.*'], scope: 'instance', handle })
    await ac.start()
    const types = ['login', 'login_failed', 'logout', 'session_created', 'token_refreshed'] as const
    for (const type of types) await ac.emitAuth({ type, userId: 'ada' })
    await ac.emitAuth({ type: 'session_revoked', sessionId: 's1' })
    await ac.emitAuth({ type: 'token_revoked', tokenId: 't1' })
    await eventually(() => heard.length === 7)
    expect(heard.map(({ type }) => type)).toEqual([
      ...types.map((type) => `auth.${type}`),
      'auth.session_revoked',
      'auth.token_revoked',
    ])
  })
})

describe('the revocation hook', () => {
  it('refuses on one instance what was revoked on another', async () => {
    const { ac, another } = await openHooks()
    const second = another()
    const [here, there] = [revocationHook(), revocationHook()]
    ac.hooks.add(here)
    second.hooks.add(there)
    await Promise.all([ac.start(), second.start()])
    expect(there.isRevoked('t1')).toBe(false)
    await ac.emitAuth({ type: 'token_revoked', tokenId: 't1', sessionId: 's1', reason: 'stolen' })
    await eventually(() => there.isRevoked('t1') && here.isRevoked('t1'), { every: 5 })
    expect([there.isRevoked('s1'), there.isRevoked('t2')]).toEqual([true, false])
  })

  it('knows at its start what was revoked before, however it was written', async () => {
    const { ac, another, sql } = await openHooks()
    await ac.emitAuth({ type: 'session_revoked', sessionId: 's1' })
    await ac.emitAuth({ type: 'logout', sessionId: 's2' })
    await ac.emitAuth({ type: 'login', sessionId: 's3' })
    await sql.query(`select aftercommit.emit('auth.token_revoked', null, null, '{"token_id": "t1"}')`)
    const second = another()
    const revocation = revocationHook({ load: () => ['from-elsewhere'] })
    second.hooks.add(revocation)
    await second.start()
    const revoked = ['s1', 's2', 't1', 'from-elsewhere', 's3', 'other'].filter((id) => revocation.isRevoked(id))
    expect(revoked).toEqual(['s1', 's2', 't1', 'from-elsewhere'])
  })

  it('says nothing before it knows, and nothing after it was stopped', async () => {
    const { ac } = await openHooks()
    const { passed, open } = gate()
    const revocation = revocationHook({ load: () => passed.then(() => []) })
    ac.hooks.add(revocation)
    expect(() => revocation.isRevoked('t1')).toThrow(expect.objectContaining({ code: 'NOT_READY' }))
    const starting = ac.start()
    await eventually(() => ac.health().reasons.includes('hook revocation has not loaded yet'))
    expect(() => revocation.isRevoked('t1')).toThrow('does not know yet')
    open()
    await starting
    expect(revocation.isRevoked('t1')).toBe(false)
    await ac.stop()
    expect(() => revocation.isRevoked('t1')).toThrow('does not know yet')
  })

  it('keeps the instance from being ready until a revocation was taken in', async () => {
    const { ac } = await openHooks()
    const kept = new Set<string>()
    let broken = true
    const store = {
      add(id: string) {
        if (broken) throw new Error('the cache is away')
        kept.add(id)
      },
      has: (id: string) => kept.has(id),
    }
    const revocation = revocationHook({ store })
    ac.hooks.add(revocation)
    await ac.start()
    await ac.emitAuth({ type: 'token_revoked', tokenId: 't1' })
    await eventually(() => ac.hooks.status('revocation').state === 'failing')
    expect(ac.health().ready).toBe(false)
    expect(() => revocation.isRevoked('t1')).toThrow('does not know yet')
    broken = false
    await eventually(() => ac.hooks.status('revocation').ready)
    expect(revocation.isRevoked('t1')).toBe(true)
  })
})
