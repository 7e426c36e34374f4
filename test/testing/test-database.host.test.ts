/** The shared server of tests, in a temporary folder of its own so that nobody else's is touched. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { type TestServer, testDatabase, testServer } from '../../src/testing/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'ac-t-'))

beforeAll(() => chmodSync(folder, 0o755))
beforeEach(() => {
  vi.stubEnv('TMPDIR', folder)
  vi.stubEnv('AFTERCOMMIT_TEST_DATABASE_URL', '')
})
afterEach(() => vi.unstubAllEnvs())
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('testDatabase', () => {
  it('is migrated, apart from every other, and gone when dropped; the last one takes the server with it', async () => {
    const [one, other] = await Promise.all([testDatabase(), testDatabase()])
    expect(one.url).not.toBe(other.url)
    await emitOne(one.url)
    expect([await countEvents(one), await countEvents(other)]).toEqual([1, 0])
    await one.drop()
    await one.drop()
    await expect(countEvents(one)).rejects.toThrow('does not exist')
    await other.drop()
    await expect(countEvents(other)).rejects.toThrow()
  })

  it('is dropped under whoever still uses it', async () => {
    const { url, drop } = await testDatabase()
    const client = new pg.Client(url)
    const lost = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await drop()
    expect(await lost).toBeInstanceOf(Error)
  })

  it('removes what killed tests have left behind, when the server starts anew', async () => {
    const server = await testServer()
    await administer(server, 'create database ac_test_1000_killed')
    await administer(server, 'create database mine')
    await server.stop()
    const again = await testServer()
    expect(await databases(again)).toContain('mine')
    expect(await databases(again)).not.toContain('ac_test_1000_killed')
    await again.stop()
  })

  it('uses the server that is given to it, and leaves it running', async () => {
    const server = await testServer()
    const { url, drop } = await testDatabase({ server: server.url })
    await emitOne(url)
    await drop()
    expect(await databases(server)).toContain('postgres')
    await server.stop()
  })

  it('says so when the PostgreSQL asked for is not installed', async () => {
    await expect(testDatabase({ major: 9 })).rejects.toMatchObject({ code: 'BINARIES_MISSING' })
  })
})

async function emitOne(url: string): Promise<void> {
  const ac = createAftercommit({ database: url })
  await ac.transaction((tx) => tx.emit('a.b', { payload: 1 }))
  await ac.stop()
}

async function countEvents({ url, schema }: { url: string; schema: string }): Promise<number> {
  const [row] = await query<{ count: number }>(url, `select count(*)::integer as count from ${schema}.events`)
  return row!.count
}

async function databases({ url }: TestServer): Promise<string[]> {
  return (await query<{ name: string }>(url, 'select datname as name from pg_database')).map(({ name }) => name)
}

async function administer({ url }: TestServer, text: string): Promise<void> {
  await query(url, text)
}

async function query<Row>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows as Row[]
  } finally {
    await client.end()
  }
}
