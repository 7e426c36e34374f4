/** A pool or root client inside the caller's transaction commits by itself, so it is no transaction. */
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import type { Sql } from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Aftercommit, accept, type CallerTransaction, defineWorkflow } from '../../src/index.ts'
import { isPrismaInstalled, LIBRARIES, type PrismaClient } from '../postgres/client-libraries.ts'
import { connect } from '../support/database.ts'
import { openLog } from './support/open-log.ts'
import { poolOf } from './support/pool-of.ts'

const isPrismaMissing = !(await isPrismaInstalled()) && !process.env.CI
const FOREIGN = Object.keys(LIBRARIES).filter((name) => name !== 'our own transaction')

const parcel = defineWorkflow({
  type: 'parcel',
  id: ({ id }: { id: string }) => id,
  initial: () => 0,
  evolve: (count, _event: { type: 'seen' }) => count + 1,
  decide: () => accept([{ type: 'seen' }]),
})

const lamp = { payload: {} }

describe.each(FOREIGN)('%s', (name) => {
  const skip = name === 'Prisma' && isPrismaMissing

  it.skipIf(skip)('refuses its pool or root client where a transaction is expected, and writes nothing', async () => {
    const { ac, url } = await openLog()
    ac.workflows.register(parcel)
    const library = await LIBRARIES[name]!(url)
    onTestFinished(async () => void (await library.close()))
    const plain = library.plain as CallerTransaction
    for (const attempt of [
      () => ac.emit(plain, 'lamp.lit', lamp),
      () => ac.emit(plain, [{ type: 'lamp.lit', ...lamp }]),
      () => ac.emitAuth({ type: 'logout', userId: 'ada' }, { tx: plain }),
      () => ac.workflows.execute(parcel, { id: 'a' }, { tx: plain }),
      () => ac.processed.mark('mail', 'event-1', { tx: plain }),
      () => ac.push.unregister('https://push.example/1', { tx: plain }),
    ]) {
      await expect(attempt()).rejects.toMatchObject({
        code: 'NOT_A_TRANSACTION',
        message: expect.stringContaining('is not inside a transaction'),
      })
    }
    expect(await ac.log.read()).toEqual([])
    expect(await ac.processed.has('mail', 'event-1')).toBe(false)
    expect(await ac.workflows.query(parcel, 'a')).toBeUndefined()
  })

  it.skipIf(skip)('emits at once through its pool or root client when emitNow asks for it', async () => {
    const { ac, url } = await openLog()
    const library = await LIBRARIES[name]!(url)
    onTestFinished(async () => void (await library.close()))
    await ac.emitNow(library.plain, 'lamp.lit', { ...lamp, id: 'one' })
    await ac.emitNow(library.plain, [{ type: 'lamp.lit', ...lamp, id: 'two' }])
    expect((await ac.log.read()).map(({ id }) => id)).toEqual(['one', 'two'])
  })

  it.skipIf(skip)('executes an input of a workflow within its transaction', async () => {
    const { ac, url } = await openLog()
    ac.workflows.register(parcel)
    const library = await LIBRARIES[name]!(url)
    onTestFinished(async () => void (await library.close()))
    const failing = library.transaction(async (tx) => {
      await ac.workflows.execute(parcel, { id: 'a' }, { tx })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await ac.workflows.query(parcel, 'a')).toBeUndefined()
    await library.transaction(async (tx) => void (await ac.workflows.execute(parcel, { id: 'a' }, { tx })))
    expect(await ac.workflows.query(parcel, 'a')).toMatchObject({ version: 1 })
  })
})

it('a client of pg is refused before BEGIN and after COMMIT, and joined in between', async () => {
  const { ac, url } = await openLog()
  const client = await connect(url)
  await expect(ac.emit(client, 'lamp.lit', lamp)).rejects.toMatchObject({ code: 'NOT_A_TRANSACTION' })
  const begun = client.query('begin')
  // Sent behind BEGIN, before its answer.
  await ac.emit(client, 'lamp.lit', { ...lamp, id: 'one' })
  await begun
  await ac.emit(client, 'lamp.lit', { ...lamp, id: 'two' })
  await client.query('commit')
  await expect(ac.emit(client, 'lamp.lit', lamp)).rejects.toMatchObject({
    code: 'NOT_A_TRANSACTION',
    message: expect.stringMatching(/the client that ran BEGIN.*ac\.emitNow\(\)/),
  })
  expect((await ac.log.read()).map(({ id }) => id)).toEqual(['one', 'two'])
})

it('emitNow without a session commits through the pool of the instance', async () => {
  const { ac } = await openLog()
  await ac.emitNow('lamp.lit', { ...lamp, id: 'one' })
  await ac.emitNow([{ type: 'lamp.lit', ...lamp, id: 'two' }])
  expect((await ac.log.read()).map(({ id }) => id)).toEqual(['one', 'two'])
})

it('twenty inputs at once for one instance, each in a transaction of the caller, are all taken', async () => {
  const { ac, url } = await openLog()
  ac.workflows.register(parcel)
  const pool = poolOf(url, 10)
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const client = await pool.connect()
      await client.query('begin')
      await ac.workflows.execute(parcel, { id: 'a' }, { tx: client })
      await client.query('commit')
      client.release()
    }),
  )
  expect(await ac.workflows.query(parcel, 'a')).toMatchObject({ version: 20 })
})

it('the types refuse a pool or root client of each library', () => {
  type Ac = Pick<Aftercommit, 'emit'>
  const check = (ac: Ac, root: Roots) => [
    // @ts-expect-error a pool is no transaction
    () => ac.emit(root.pg, 'lamp.lit', lamp),
    // @ts-expect-error the root `sql` is no transaction
    () => ac.emit(root.postgresJs, 'lamp.lit', lamp),
    // @ts-expect-error `db` is no transaction
    () => ac.emit(root.drizzle, 'lamp.lit', lamp),
    // @ts-expect-error `db` is no transaction
    () => ac.emit(root.kysely, 'lamp.lit', lamp),
    // @ts-expect-error the client of Prisma is no transaction
    () => ac.emit(root.prisma, 'lamp.lit', lamp),
  ]
  expect(check).toBeTypeOf('function')
})

interface Roots {
  readonly pg: pg.Pool
  readonly postgresJs: Sql
  readonly drizzle: NodePgDatabase
  readonly kysely: Kysely<unknown>
  readonly prisma: PrismaClient
}
