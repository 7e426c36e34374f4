import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { withLock } from '../../embedded/src/lock.ts'
import { isAlive, ownIdentity, startOf } from '../../embedded/src/processes.ts'
import { addUser, countUsers } from '../../embedded/src/users.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ac-lock-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** More than any system hands out, so never a process. */
const DEAD = { pid: 2 ** 30, started: 'long ago' }
/** Our own number, as if it had belonged to an earlier process. */
const REUSED = { pid: process.pid, started: 'long ago' }

describe('the lock', () => {
  it('lets one in at a time', async () => {
    let inside = 0
    let most = 0
    const visit = () =>
      withLock(folder, async () => {
        most = Math.max(most, ++inside)
        for (let i = 0; i < 5; i++) await turn()
        inside--
      })
    await Promise.all(Array.from({ length: 25 }, visit))
    expect(most).toBe(1)
  })

  it.each([
    ['has died', DEAD],
    ['has died and whose number another process got', REUSED],
  ])('passes on from a holder that %s', async (_, holder) => {
    writeFileSync(join(folder, '41'), JSON.stringify(holder))
    expect(await withLock(folder, async () => 'in')).toBe('in')
  })

  it('passes on from a file that a crash of the machine left empty', async () => {
    writeFileSync(join(folder, '41'), '')
    expect(await withLock(folder, async () => 'in')).toBe('in')
  })

  it('does not pass on from a living holder, and says who that is', async () => {
    writeFileSync(join(folder, '41'), JSON.stringify(ownIdentity()))
    await expect(withLock(folder, async () => 'in', 50)).rejects.toThrow(`Process ${process.pid}`)
  })

  it('is free again after a failure', async () => {
    await expect(withLock(folder, () => Promise.reject(new Error('inside')))).rejects.toThrow('inside')
    expect(await withLock(folder, async () => 'in')).toBe('in')
  })

  it('does not pile up files', async () => {
    for (let i = 0; i < 40; i++) await withLock(folder, async () => undefined)
    expect(readdirSync(folder).length).toBeLessThan(12)
  })
})

describe('users', () => {
  it('count once per handle, and not at all when their process is gone', async () => {
    const first = await addUser(folder)
    await addUser(folder)
    writeFileSync(join(folder, 'dead'), JSON.stringify(DEAD))
    writeFileSync(join(folder, 'reused'), JSON.stringify(REUSED))
    writeFileSync(join(folder, 'torn'), '{"pid":')
    expect(await countUsers(folder)).toBe(2)
    expect(readdirSync(folder)).toHaveLength(2)
    rmSync(first)
    expect(await countUsers(folder)).toBe(1)
  })
})

describe('a process', () => {
  it('is known by its number and its start', () => {
    expect(isAlive(ownIdentity())).toBe(true)
    expect(isAlive(REUSED)).toBe(false)
    expect(startOf(DEAD.pid)).toBeUndefined()
    expect(startOf(0)).toBeUndefined()
  })
})
