/**
 * Finding home, the folder with the cluster and all that belongs to it. It is `postgres` in the data folder; where the
 * server's user cannot get there, it is a folder elsewhere and `postgres` is a link to it.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, readdir, readFile, readlink, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, sep } from 'node:path'
import { type Account, ownUid } from './account.ts'
import { EmbeddedError } from './errors.ts'
import { canEnter, checkOwn, firstOwnFolder, makeFolder, otherOwner, passable, shortHash } from './ownership.ts'
import { findPostmaster } from './postmaster.ts'

export async function findHome(dataDir: string, account: Account): Promise<string> {
  const place = join(dataDir, 'postgres')
  const entry = await lstat(place).catch(() => undefined)
  if (entry?.isSymbolicLink()) {
    const home = await followLink(place)
    if (home) return home
  } else if (entry) {
    if (entry.uid !== ownUid() && ownUid() !== -1) throw otherOwner(place, entry.uid)
    if (account.switched && !(await canEnter(place, account))) {
      throw new EmbeddedError(
        'NO_PERMISSION',
        `The server runs as "${account.name}" because this process is root, and "${account.name}" can no longer reach ` +
          `${place}, so it was not started. Open the folders above it (chmod o+x), or set AFTERCOMMIT_DATA_DIR.`,
      )
    }
    return place
  }
  if (!account.switched || (await canEnter(dataDir, account))) {
    await makeFolder(place, passable(account))
    return place
  }
  const home = await makeHomeElsewhere(dataDir, account)
  await symlink(home, place)
  return home
}

/** Only links this package makes are followed: under root, a link to somewhere else would hand out that folder. */
async function followLink(place: string): Promise<string | undefined> {
  const target = await readlink(place)
  if (!isHomeElsewhere(target)) {
    throw new EmbeddedError(
      'NO_PERMISSION',
      `${place} is a symbolic link that aftercommit did not make, so it was not followed. ` +
        'Remove the link, and set AFTERCOMMIT_DATA_DIR to keep the database in another place.',
    )
  }
  if (await lstat(target).catch(() => undefined)) {
    await checkOwn(dirname(target))
    await checkOwn(target)
    return target
  }
  await rm(place) // a temporary folder that a restart of the machine has emptied
  return undefined
}

// Root's own project below a closed folder (such as /root): the server's user cannot get there, so its files go where
// that user can. A folder that is already there belongs to another project that once had this path: leave it alone.
async function makeHomeElsewhere(dataDir: string, account: Account): Promise<string> {
  const [lasting, temporary] = homesElsewhere()
  const candidates = (await isTemporary(dataDir)) ? [temporary, lasting] : [lasting, temporary]
  const base = await firstOwnFolder(candidates, account)
  if (base === temporary) await sweepTemporary(base, account)
  let home = join(base, shortHash(dataDir))
  if (!(await makeFolder(home, passable(account)))) {
    home = `${home}-${randomBytes(4).toString('hex')}`
    await makeFolder(home, passable(account))
  }
  await writeFile(join(home, ORIGIN), dataDir)
  return home
}

/** What belongs to a data folder in the temporary folder goes with it, sooner or later; all other data is never removed. */
async function sweepTemporary(base: string, account: Account): Promise<void> {
  for (const name of await readdir(base)) {
    const home = join(base, name)
    const origin = await readFile(join(home, ORIGIN), 'utf8').catch(() => undefined)
    if (origin === undefined || existsSync(origin) || !(await isTemporary(origin))) continue
    if (await findPostmaster(join(home, 'data'), account)) continue
    await rm(home, { recursive: true, force: true })
  }
}

/** The file in a home that names the data folder it was made for. */
const ORIGIN = 'origin'

async function isTemporary(path: string): Promise<boolean> {
  return path.startsWith(`${await realpath(tmpdir())}${sep}`)
}

const LASTING = '/var/lib/aftercommit'

function homesElsewhere(): [lasting: string, temporary: string] {
  return [LASTING, join(tmpdir(), temporaryName())]
}

/** By name, because TMPDIR may have been another when the link was laid; the owner is checked as well. */
function isHomeElsewhere(path: string): boolean {
  return dirname(path) === LASTING || basename(dirname(path)) === temporaryName()
}

function temporaryName(): string {
  return `aftercommit-data-${ownUid()}`
}
