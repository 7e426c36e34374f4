import { describe, expect, it } from 'vitest'
import { VersionConflictError } from '../../src/index.ts'
import { LIBRARIES } from '../postgres/client-libraries.ts'
import { connect, testDatabase } from '../support/database.ts'
import { createProxy } from '../support/proxy.ts'
import { instance, openLog } from './support/open-log.ts'

describe.each(Object.keys(LIBRARIES).filter((name) => name !== 'Prisma'))('through %s', (name) => {
  const aggregate = { type: 'lamp', id: '1' }

  it('a conflict names the stream, what was expected and what was found', async () => {
    const { ac, url, sql } = await openLog()
    await sql.query(`select aftercommit.declare_stream('lamp')`)
    await sql.query(`select aftercommit.emit('lamp.lit', 'lamp', '1', '{"secret": "canary"}')`)
    const library = await LIBRARIES[name]!(url)
    try {
      const conflict = library.transaction(async (tx) => {
        await ac.emit(tx, 'lamp.lit', { aggregate, payload: { secret: 'canary' }, expectedVersion: 7 })
      })
      const error = await conflict.catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(VersionConflictError)
      expect(error).toMatchObject({
        code: 'VERSION_CONFLICT',
        aggregateType: 'lamp',
        aggregateId: '1',
        expected: 7,
        found: 1,
      })
      expect(String(error)).not.toContain('canary')
      const many = library.transaction(async (tx) => {
        await ac.emit(tx, [
          { type: 'lamp.lit', aggregate, payload: {}, expectedVersion: 1 },
          { type: 'lamp.lit', aggregate, payload: {}, expectedVersion: 1 },
        ])
      })
      await expect(many).rejects.toMatchObject({ code: 'VERSION_CONFLICT', expected: 1, found: 2 })
    } finally {
      await library.close()
    }
    expect(await ac.log.stream(aggregate)).toHaveLength(1)
  })

  it('an aggregate type that is no stream and a log that is not there are told apart', async () => {
    const { ac, url } = await openLog()
    const library = await LIBRARIES[name]!(url)
    const bare = await testDatabase()
    const nowhere = await LIBRARIES[name]!(bare.url)
    try {
      await expect(
        ac.emitNow(library.plain, 'lamp.lit', { aggregate, payload: {}, expectedVersion: 0 }),
      ).rejects.toMatchObject({ code: 'NOT_A_STREAM', message: expect.stringContaining('"lamp"') })
      await expect(
        instance({ database: bare.url }).emitNow(nowhere.plain, 'lamp.lit', { payload: {} }),
      ).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' })
    } finally {
      await Promise.all([library.close(), nowhere.close()])
    }
  })
})

describe('a connection that is lost while appending', () => {
  it('is safe to repeat with ids of one’s own, and says so', async () => {
    const { ac, url } = await openLog()
    const proxy = await createProxy(url)
    const lose = async (events: { type: string; payload: object; id?: string }[]) => {
      proxy.pass()
      const client = await connect(proxy.url)
      await ac.emitNow(client, 'lamp.lit', { payload: {} })
      proxy.cutAfter(0)
      return ac.emitNow(client, events).catch((error: Error) => error)
    }
    const chosen = await lose([{ type: 'lamp.lit', payload: {}, id: 'one' }])
    expect(chosen).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('an event was') })
    expect(String(chosen)).toContain('emitting them again is safe')
    const mixed = await lose([
      { type: 'lamp.lit', payload: {}, id: 'two' },
      { type: 'lamp.lit', payload: {} },
    ])
    expect(mixed).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('2 events were') })
    expect(String(mixed)).toContain('with ids of your own')
  })
})

it('what the database says about anything else is passed on as it is', async () => {
  const { ac, sql } = await openLog()
  await sql.query('begin')
  await sql.query('select 1 / 0').catch(() => {})
  await expect(ac.emit(sql, 'lamp.lit', { payload: {} })).rejects.toMatchObject({ code: '25P02' })
  await sql.query('rollback')
})
