import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Account } from '../../embedded/src/account.ts'
import { firstOwnFolder } from '../../embedded/src/ownership.ts'

const isRoot = process.getuid?.() === 0
const self: Account = { name: 'self', uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1, switched: false }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ac-own-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a folder in a shared place', () => {
  it('is made when it is not there, closed to everybody else', async () => {
    const path = join(folder, 'new')
    expect(await firstOwnFolder([path], self)).toBe(path)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  })

  it('is passed over when others can write to it, and the next one is taken', async () => {
    const [open, own] = [join(folder, 'open'), join(folder, 'own')]
    mkdirSync(open)
    chmodSync(open, 0o777)
    expect(await firstOwnFolder([open, own], self)).toBe(own)
  })

  it('is not trusted when it is a link, which whoever laid it can turn elsewhere', async () => {
    mkdirSync(join(folder, 'real'), { mode: 0o700 })
    symlinkSync(join(folder, 'real'), join(folder, 'link'))
    await expect(firstOwnFolder([join(folder, 'link')], self)).rejects.toMatchObject({ code: 'NO_PERMISSION' })
  })

  it.runIf(isRoot)('is not trusted when it belongs to somebody else', async () => {
    const theirs = join(folder, 'theirs')
    mkdirSync(theirs, { mode: 0o700 })
    chownSync(theirs, 65534, 65534)
    await expect(firstOwnFolder([theirs], self)).rejects.toMatchObject({ code: 'NO_PERMISSION' })
  })

  it.runIf(isRoot)('is passed over when the server’s user cannot reach it', async () => {
    const nobody = { name: 'nobody', uid: 65534, gid: 65534, switched: true }
    chmodSync(folder, 0o700)
    await expect(firstOwnFolder([join(folder, 'hidden')], nobody)).rejects.toThrow('"nobody" cannot reach')
  })
})
