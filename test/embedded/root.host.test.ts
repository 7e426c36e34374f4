import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copyBare, isRoot, isRunning, makePlayground, query } from './support.ts'

const CACHE = '/var/cache/aftercommit'
const HOMES = '/var/lib/aftercommit'
const TEMPORARY_HOMES = join(tmpdir(), 'aftercommit-data-0')

describe.runIf(isRoot)('under root', () => {
  const playground = makePlayground()
  const nobody = { uid: 65534, gid: 65534 }
  /** Folders outside the playground. Only our own are removed: other servers of this machine live beside them. */
  const elsewhere: string[] = []
  const homeOf = (dataDir: string) => {
    const target = readlinkSync(join(dataDir, 'postgres'))
    elsewhere.push(target)
    return target
  }
  let bare: string
  beforeAll(async () => {
    bare = await copyBare(join(playground.folder, 'bare'))
  })
  afterAll(async () => {
    await playground.clear()
    for (const folder of elsewhere) rmSync(folder, { recursive: true, force: true })
  })

  it('the server runs as nobody, and only its data and socket belong to nobody', async () => {
    const dataDir = playground.dataDir('as-root')
    const server = await startEmbedded({ dataDir })
    expect(statSync(`/proc/${server.pid}`).uid).toBe(nobody.uid)
    const owned = readdirSync(join(dataDir, 'postgres')).filter(
      (name) => lstatSync(join(dataDir, 'postgres', name)).uid !== 0,
    )
    expect(owned.sort()).toEqual(['data', 'socket'])
    await server.stop()
  })

  it('a strict umask changes nothing', async () => {
    const child = playground.child({ dataDir: playground.dataDir('umask'), umask: 0o077 })
    const { url } = await child.until('up')
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    await child.stop()
  })

  it('somebody who is not root runs the server as themselves, without install scripts', async () => {
    mkdirSync(join(playground.folder, 'open'))
    chmodSync(join(playground.folder, 'open'), 0o777)
    const child = playground.child({ dataDir: join(playground.folder, 'open/data'), binaries: bare }, nobody)
    const up = await child.until('up')
    expect(statSync(`/proc/${up.pid}`).uid).toBe(nobody.uid)
    expect(statSync(up.dataDir)).toMatchObject({ uid: nobody.uid, mode: 0o40700 })
    expect(await query(up.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await child.stop()
    expect(isRunning(up.pid)).toBe(false)
  })

  it('a project in a private folder gets its binaries copied and its database linked, and keeps both', async () => {
    const project = mkdtempSync('/var/tmp/ac-private-')
    const binaries = await copyBare(join(project, 'binaries'))
    appendFileSync(join(binaries, 'native/bin/postgres'), randomUUID()) // so that no cache has it yet
    const dataDir = join(project, '.aftercommit')
    const copies: (string | undefined)[] = []
    const onProgress = (step: string, detail?: string) => void (step === 'copy' && copies.push(detail))
    const first = await startEmbedded({ dataDir, binaries, onProgress })
    expect(copies).toEqual([expect.stringContaining(CACHE)])
    elsewhere.push(copies[0]!)
    const target = homeOf(dataDir)
    expect(dirname(target)).toBe(HOMES)
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()

    const again = await startEmbedded({ dataDir, binaries, onProgress })
    expect(copies).toHaveLength(1)
    expect(homeOf(dataDir)).toBe(target)
    expect(await query(again.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await again.stop()
    expect(readdirSync(join(binaries, 'native/lib'))).not.toContain('libpq.so.5')
    rmSync(project, { recursive: true })
  })

  it('a temporary private folder has its database in a temporary place, which is emptied when the folder is gone', async () => {
    const make = (name: string) => {
      mkdirSync(join(playground.folder, name), { mode: 0o700 })
      return playground.dataDir(join(name, 'data'))
    }
    const [gone, next] = [make('gone'), make('next')]
    const first = await startEmbedded({ dataDir: gone })
    const target = homeOf(gone)
    expect(dirname(target)).toBe(TEMPORARY_HOMES)
    await first.stop()
    rmSync(gone, { recursive: true })
    const second = await startEmbedded({ dataDir: next })
    expect(homeOf(next)).not.toBe(target)
    expect(existsSync(target)).toBe(false)
    await second.stop()
  })

  it('a project that forgot its link gets a new database and leaves the old one alone', async () => {
    mkdirSync(join(playground.folder, 'moved'), { mode: 0o700 })
    const dataDir = playground.dataDir('moved/.aftercommit')
    const first = await startEmbedded({ dataDir })
    const target = homeOf(dataDir)
    await first.stop()
    rmSync(join(dataDir, 'postgres'))
    const second = await startEmbedded({ dataDir })
    expect(homeOf(dataDir)).not.toBe(target)
    expect(existsSync(join(target, 'data/PG_VERSION'))).toBe(true)
    await second.stop()
  })

  it('a link whose target is gone, as after a restart of the machine, is laid anew', async () => {
    mkdirSync(join(playground.folder, 'emptied'), { mode: 0o700 })
    const dataDir = playground.dataDir('emptied/.aftercommit')
    const first = await startEmbedded({ dataDir })
    await first.stop()
    const target = homeOf(dataDir)
    rmSync(target, { recursive: true })
    const second = await startEmbedded({ dataDir })
    expect(homeOf(dataDir)).toBe(target)
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await second.stop()
  })
})
