import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { findAccount } from '../../embedded/src/account.ts'
import { isLinux, isRoot, isRunning, makePlayground, poll, query } from './support.ts'

const playground = makePlayground()
afterAll(() => playground.clear())

describe('kill -9', () => {
  it('of the only user leaves a server that the next start adopts, with everything in it', async () => {
    const dataDir = playground.dataDir('user')
    const child = playground.child({ dataDir })
    const up = await child.until('up')
    await query(up.url, 'create table kept as select 42 as answer')
    await child.kill()
    expect(isRunning(up.pid)).toBe(true)
    const server = await startEmbedded({ dataDir })
    expect(server).toMatchObject({ adopted: true, pid: up.pid, version: up.version, url: up.url })
    expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await server.stop()
    expect(isRunning(up.pid)).toBe(false)
  })

  it('of one of two users does not keep the server from stopping with the other', async () => {
    const dataDir = playground.dataDir('one-of-two')
    const [victim, survivor] = [playground.child({ dataDir }), playground.child({ dataDir })]
    const { pid } = await victim.until('up')
    await survivor.until('up')
    await victim.kill()
    await survivor.stop()
    expect(isRunning(pid)).toBe(false)
  })

  it('of the server with open connections is followed by recovery, under the same address', async () => {
    const dataDir = playground.dataDir('server')
    const first = await startEmbedded({ dataDir })
    await query(first.url, 'create table kept as select 42 as answer')
    const client = new pg.Client(first.url)
    client.on('error', () => undefined)
    await client.connect()
    const busy = client.query('select pg_sleep(600)').catch(() => undefined)
    process.kill(first.pid, 'SIGKILL')
    const second = await startEmbedded({ dataDir })
    expect(second).toMatchObject({ adopted: false, url: first.url })
    expect(second.pid).not.toBe(first.pid)
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await busy
    await first.stop()
    expect(isRunning(second.pid)).toBe(true)
    await second.stop()
    expect(isRunning(second.pid)).toBe(false)
  })

  it('in the middle of initdb is followed by a whole database', async () => {
    const killInInitdb = async (dataDir: string): Promise<boolean> => {
      const child = playground.child({ dataDir })
      const home = join(dataDir, 'postgres')
      const started = () =>
        existsSync(home) && readdirSync(home).some((name) => existsSync(join(home, name, 'data/PG_VERSION')))
      await poll(started, 'initdb has begun')
      await child.kill()
      return !existsSync(join(home, 'data'))
    }
    // Where the machine stood still meanwhile, the kill comes too late: then the next folder is tried.
    let dataDir = playground.dataDir('initdb-1')
    for (let n = 2; !(await killInInitdb(dataDir)); n++) dataDir = playground.dataDir(`initdb-${n}`)
    const server = await startEmbedded({ dataDir })
    expect(server.adopted).toBe(false)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
  })

  it('at any step of the first start leaves a folder that starts', async () => {
    for (const step of ['links', 'initdb', 'start', 'ready']) {
      const dataDir = playground.dataDir(`step-${step}`)
      const child = playground.child({ dataDir })
      await child.until(step)
      await child.kill()
      const server = await startEmbedded({ dataDir })
      expect(await query(server.url, 'select 1 as one'), step).toEqual([{ one: 1 }])
      await server.stop()
      expect(isRunning(server.pid), step).toBe(false)
    }
  })

  it('of many users while they start and stop never leaves two servers or a broken folder', async () => {
    const dataDir = playground.dataDir('storm')
    for (let round = 0; round < 4; round++) {
      const children = Array.from({ length: 4 }, () => playground.child({ dataDir }))
      const steps = ['links', 'start', 'adopt', 'ready', 'up']
      await Promise.all(children.map((child) => child.until(steps[round]!, 'up')))
      await Promise.all(
        children.map((child, index) => (index % 2 ? child.kill() : child.stop().catch(() => child.kill()))),
      )
    }
    const server = await startEmbedded({ dataDir })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
    expect(isRunning(server.pid)).toBe(false)
  })
})

describe('leftovers', () => {
  it('of an interrupted initdb are removed, and a folder without our marker is set aside', async () => {
    const dataDir = playground.dataDir('leftovers')
    const probe = await startEmbedded({ dataDir })
    await probe.stop()
    const home = join(dataDir, 'postgres')
    rmSync(join(home, 'data/aftercommit.json'))
    mkdirSync(join(home, 'init-abcdef/data'), { recursive: true })
    writeFileSync(join(home, 'init-abcdef/data/PG_VERSION'), '18\n')
    const server = await startEmbedded({ dataDir })
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    const names = readdirSync(home)
    expect(names.filter((name) => name.startsWith('init-'))).toEqual([])
    expect(names.filter((name) => name.startsWith('unfinished-'))).toHaveLength(1)
    await server.stop()
  })

  it.runIf(isLinux)('that name a number which is now another process do not stand in the way', async () => {
    const dataDir = playground.dataDir('reused')
    const first = await startEmbedded({ dataDir })
    process.kill(first.pid, 'SIGKILL')
    await poll(() => !isRunning(first.pid), 'the server is gone')
    // A process of the server's own user: Postgres by itself takes it for the postmaster and refuses to start.
    const { uid, gid } = isRoot
      ? findAccount('nobody:x:65534:65534:::')!
      : { uid: process.getuid!(), gid: process.getgid!() }
    const stranger = spawn('sleep', ['600'], { uid, gid, stdio: 'ignore' })
    const home = join(dataDir, 'postgres')
    const pidFile = `${stranger.pid}\n${home}/data\n1\n5432\n${home}/socket\n\n0 0\nready   \n`
    writeFileSync(join(home, 'data/postmaster.pid'), pidFile)
    writeFileSync(join(home, 'socket/.s.PGSQL.5432.lock'), pidFile)
    const second = await startEmbedded({ dataDir })
    expect(second.adopted).toBe(false)
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await second.stop()
    expect(isRunning(stranger.pid!)).toBe(true)
    stranger.kill()
    await first.stop()
  })

  it('a server whose socket was swept away is replaced by one that can be reached', async () => {
    const dataDir = playground.dataDir('swept')
    const deaf = await startEmbedded({ dataDir })
    rmSync(join(deaf.host, '.s.PGSQL.5432'))
    const server = await startEmbedded({ dataDir })
    expect(server.adopted).toBe(false)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await Promise.all([deaf.stop(), server.stop()])
    expect(isRunning(deaf.pid)).toBe(false)
  })

  it.runIf(isLinux)('a server whose folder was deleted is stopped before a new one takes its place', async () => {
    const dataDir = playground.dataDir('deleted')
    const old = await startEmbedded({ dataDir })
    rmSync(dataDir, { recursive: true })
    const server = await startEmbedded({ dataDir })
    expect(isRunning(old.pid)).toBe(false)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await old.stop()
    await server.stop()
    expect(isRunning(server.pid)).toBe(false)
  })

  it('stopping after the folder was deleted still ends the server', async () => {
    const dataDir = playground.dataDir('deleted-stop')
    const server = await startEmbedded({ dataDir })
    rmSync(dataDir, { recursive: true })
    await server.stop()
    expect(isRunning(server.pid)).toBe(false)
    expect(existsSync(dataDir)).toBe(false)
  })
})
