import { once } from 'node:events'
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findSystemPostgres } from '../../scripts/system-postgres.mjs'
import { olderPostgres } from '../support/older-postgres.ts'
import { hasProgram } from '../support/programs.ts'
import { copyBare, isRunning, makePlayground, query } from './support.ts'

const playground = makePlayground()
let bare: string
beforeAll(async () => {
  bare = await copyBare(join(playground.folder, 'bare'))
})
afterAll(() => playground.clear())

describe('the first start', () => {
  it('makes a database, reports its steps and stops without a trace of a process', async () => {
    const steps: string[] = []
    const dataDir = playground.dataDir('first')
    const server = await startEmbedded({ dataDir, onProgress: (step) => steps.push(step) })
    expect(steps).toEqual(['links', 'initdb', 'start', 'ready'])
    expect(server).toMatchObject({ adopted: false, dataDir, version: expect.stringMatching(/^\d+\.\d+$/) })
    const [row] = await query(server.url, `select current_setting('server_version') as version, current_user as who`)
    expect(row).toMatchObject({ version: server.version, who: 'postgres' })
    await server.stop()
    await server.stop()
    expect(isRunning(server.pid)).toBe(false)
    expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
  })

  it('keeps what was written for the next start, which needs no initdb', async () => {
    const dataDir = playground.dataDir('kept')
    const first = await startEmbedded({ dataDir })
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()
    const steps: string[] = []
    const second = await startEmbedded({ dataDir, version: first.version, onProgress: (step) => steps.push(step) })
    expect(steps).toEqual(['links', 'start', 'ready'])
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await second.stop()
  })

  it('works when install scripts were blocked, and leaves the package as it was', async () => {
    const before = readdirSync(join(bare, 'native/lib'))
    expect(before).not.toContain('libpq.so.5')
    const server = await startEmbedded({ dataDir: playground.dataDir('blocked', bare), binaries: bare })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
    expect(readdirSync(join(bare, 'native/lib'))).toEqual(before)
  })

  it('works in a folder with spaces, quotes, commas, a colon and letters of other languages', async () => {
    const dataDir = playground.dataDir(`it's "a", ü: %2F folder`)
    const server = await startEmbedded({ dataDir })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
  })

  it('uses a short folder elsewhere for the socket when the path of the data folder is too long', async () => {
    const dataDir = playground.dataDir(join('deep', 'x'.repeat(100)))
    const server = await startEmbedded({ dataDir })
    expect(server.host.startsWith(dataDir)).toBe(false)
    expect(statSync(server.host).mode & 0o777).toBe(0o700)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
    expect(existsSync(server.host)).toBe(false)
  })

  it.each([14, 15, 16, 17])('works with the binaries of another major: %i', async (major) => {
    const binaries = olderPostgres(major)
    const server = await startEmbedded({ dataDir: playground.dataDir(`of-${major}`, binaries), binaries })
    expect(server.version).toMatch(new RegExp(`^${major}\\.`))
    expect(await query(server.url, `select current_setting('server_version') as v`)).toEqual([{ v: server.version }])
    await server.stop()
  })

  it.runIf(hasProgram("a system's postgres", 'a server with JIT'))(
    'works with a PostgreSQL of the system, and takes its JIT',
    async () => {
      const binaries = findSystemPostgres()
      const server = await startEmbedded({ dataDir: playground.dataDir('system', binaries), binaries })
      const sql = `select current_setting('server_version') as v, pg_jit_available() as jit`
      expect(await query(server.url, sql)).toEqual([{ v: expect.stringContaining(server.version), jit: true }])
      await server.stop()
      const again = await startEmbedded({ dataDir: server.dataDir, binaries, version: server.version })
      await again.stop()
    },
  )
})

describe('the server', () => {
  it('is closed to other users and is set up for development', async () => {
    const server = await startEmbedded({ dataDir: playground.dataDir('set-up'), settings: { work_mem: '9MB' } })
    const setting = async (name: string) => (await query(server.url, `select current_setting('${name}') as v`))[0]?.v
    expect(statSync(server.host).mode & 0o777).toBe(0o700)
    expect(statSync(join(server.dataDir, 'postgres/data')).mode & 0o777).toBe(0o700)
    expect(await setting('listen_addresses')).toBe('')
    expect(await setting('fsync')).toBe('on')
    expect(await setting('max_connections')).toBe('100')
    expect(await setting('max_prepared_transactions')).toBe('20')
    expect(await setting('server_encoding')).toBe('UTF8')
    expect(await setting('work_mem')).toBe('9MB')
    await server.stop()
  })

  it('is reached by postgres.js through host and port', async () => {
    const server = await startEmbedded({ dataDir: playground.dataDir('postgres-js') })
    const sql = postgres({ host: server.host, port: server.port, username: 'postgres', database: 'postgres' })
    expect([...(await sql`select 1 as one`)]).toEqual([{ one: 1 }])
    await sql.end()
    await server.stop()
  })

  it('on TCP wants its password, keeps it to its user, and keeps its port over a restart', async () => {
    const dataDir = playground.dataDir('tcp')
    const server = await startEmbedded({ dataDir, listen: 'tcp' })
    const url = new URL(server.url)
    expect(url.hostname).toBe('127.0.0.1')
    expect(url.password).toMatch(/^[0-9a-f]{48}$/)
    expect(statSync(join(dataDir, 'postgres/password')).mode & 0o777).toBe(0o600)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    const stranger = new pg.Client({ host: server.host, port: server.port, user: 'postgres', password: 'wrong' })
    await expect(stranger.connect()).rejects.toMatchObject({ code: '28P01' })
    await server.stop()
    const again = await startEmbedded({ dataDir, listen: 'tcp' })
    expect(again.port).toBe(server.port)
    await again.stop()
    const socket = await startEmbedded({ dataDir })
    expect(socket.host).toContain(dataDir)
    expect(await query(socket.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await socket.stop()
  })

  it('on TCP takes another port when its last one is taken', async () => {
    const dataDir = playground.dataDir('tcp-taken')
    const server = await startEmbedded({ dataDir, listen: 'tcp' })
    await server.stop()
    const squatter = createServer().listen(server.port, '127.0.0.1')
    await once(squatter, 'listening')
    const again = await startEmbedded({ dataDir, listen: 'tcp' })
    expect(again.port).not.toBe(server.port)
    expect(await query(again.url, 'select 1 as one')).toEqual([{ one: 1 }])
    squatter.close()
    await again.stop()
  })

  it('does not see the environment of the application', async () => {
    process.env.SECRET_OF_THE_APP = 'do not tell'
    const server = await startEmbedded({ dataDir: playground.dataDir('environment') })
    delete process.env.SECRET_OF_THE_APP
    if (process.platform === 'linux') {
      expect(readFileSync(`/proc/${server.pid}/environ`, 'utf8')).not.toContain('do not tell')
    }
    await server.stop()
  })

  it('keeps the data folder out of version control', async () => {
    const dataDir = playground.dataDir('ignored')
    const server = await startEmbedded({ dataDir })
    expect(readFileSync(join(dataDir, '.gitignore'), 'utf8')).toBe('*\n')
    expect(lstatSync(join(dataDir, 'postgres')).isDirectory()).toBe(true)
    await server.stop()
  })
})
