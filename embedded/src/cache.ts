/**
 * Making the binaries usable for the server's user. Nothing is ever written into node_modules: what cannot be used where
 * it lies is copied to a cache first.
 */

import { randomBytes } from 'node:crypto'
import { chmod, copyFile, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Account, canUse, ownUid } from './account.ts'
import type { Binaries } from './binaries.ts'
import { hasLinks, layLinks } from './links.ts'
import { firstOwnFolder, makeFolder, shortHash } from './ownership.ts'
import { startOf } from './processes.ts'

/**
 * Returns binaries the account can run, copied if need be. Also copied: on macOS, binaries without their links, since
 * the loader there looks only beside the library; and binaries when a path has a colon, which no list of
 * library folders can hold.
 */
export async function makeUsable(
  found: Binaries,
  account: Account,
  home: string,
  onCopy: (to: string) => void,
): Promise<{ readonly native: string; readonly copied: boolean }> {
  if (found.installed) return { native: found.native, copied: false }
  const bare = process.platform === 'darwin' && !(await hasLinks(found.native))
  const unlistable = process.platform !== 'win32' && `${home}${found.native}`.includes(':')
  if (!bare && !unlistable && (await isUsable(found.native, account))) return { native: found.native, copied: false }
  const cache = await firstOwnFolder(caches(), account)
  const native = join(cache, await copyName(found))
  if (!(await stat(native).catch(() => undefined))) {
    onCopy(native)
    await copyWhole(found.native, native)
  }
  return { native, copied: true }
}

async function isUsable(native: string, account: Account): Promise<boolean> {
  if (process.platform === 'win32') return true
  for (const path of ['bin/initdb', 'bin/postgres', 'lib', 'lib/postgresql', 'share/postgresql']) {
    if (!(await canUse(join(native, path), account, 5))) return false
  }
  return true
}

function caches(): string[] {
  const own = join(tmpdir(), `aftercommit-cache-${ownUid()}`)
  return ownUid() === 0 ? ['/var/cache/aftercommit', own] : [own]
}

/** Two projects with the same binaries share one copy; binaries built differently under the same version do not. */
async function copyName(found: Binaries): Promise<string> {
  return `postgres-${found.version}-${shortHash(await readFile(join(found.native, 'bin/postgres')))}`
}

/** The copy appears under its name only when it is whole, so a process killed half-way leaves nothing to trip over. */
async function copyWhole(from: string, to: string): Promise<void> {
  await removeAbandonedDrafts(dirname(to))
  const draft = `${to}.${process.pid}.${randomBytes(4).toString('hex')}.draft`
  try {
    await copyTree(from, draft)
    await layLinks(draft, join(draft, 'lib'))
    await rename(draft, to)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // When another process finished the same copy first, its copy is as good.
    if (!(await stat(to).catch(() => undefined))) throw error
  }
}

async function copyTree(from: string, to: string): Promise<void> {
  await makeFolder(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyTree(source, target)
    if (entry.isFile()) {
      await copyFile(source, target)
      await chmod(target, 0o755)
    }
  }
}

async function removeAbandonedDrafts(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = /\.(\d+)\.[0-9a-f]+\.draft$/.exec(name)?.[1]
    if (pid && startOf(Number(pid)) === undefined) await rm(join(cache, name), { recursive: true, force: true })
  }
}
