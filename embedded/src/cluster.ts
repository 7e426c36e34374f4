/**
 * The cluster: made once by initdb, in a folder of another name that is renamed at the very end. Whatever dies in the
 * middle, `data` is either absent or whole, and a marker inside it says that it was made here.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Binaries } from './binaries.ts'
import { EmbeddedError, failure } from './errors.ts'
import type { Folders } from './folders.ts'
import { give } from './ownership.ts'
import { type Programs, spawnProgram } from './programs.ts'

const MARKER = 'aftercommit.json'

export function hasCluster(folders: Folders): boolean {
  return existsSync(join(folders.data, MARKER))
}

/** Refuses a cluster that the binaries cannot read. Only the major version matters to the files. */
export async function checkMajor(folders: Folders, binaries: Binaries): Promise<void> {
  const major = (await readFile(join(folders.data, 'PG_VERSION'), 'utf8')).trim()
  if (major === binaries.major) return
  throw new EmbeddedError(
    'OTHER_VERSION',
    `The database in ${folders.dataDir} was made by PostgreSQL ${major} and the installed binaries are ` +
      `${binaries.version}, so it was not started. Delete ${folders.dataDir} to begin with an empty database, ` +
      `install binaries of version ${major} to go on with this one, or set AFTERCOMMIT_DATA_DIR to another folder.`,
  )
}

export async function makeCluster(folders: Folders, binaries: Binaries, programs: Programs): Promise<void> {
  await clearLeftovers(folders)
  const workshop = await mkdtemp(join(folders.home, 'init-'))
  try {
    await give(workshop, programs.account)
    await initialise(workshop, folders, programs)
    // "wx" does not follow a link, should the server's user have put one there.
    const marker = join(workshop, 'data', MARKER)
    await writeFile(marker, `${JSON.stringify({ postgres: binaries.version })}\n`, { flag: 'wx' })
    await give(marker, programs.account)
    await rename(join(workshop, 'data'), folders.data)
  } finally {
    await rm(workshop, { recursive: true, force: true })
  }
}

async function initialise(workshop: string, folders: Folders, programs: Programs): Promise<void> {
  const password = randomBytes(24).toString('hex')
  await writeFile(folders.password, password, { mode: 0o600 })
  const passwordFile = join(workshop, 'password')
  await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' })
  await give(passwordFile, programs.account)
  const args = ['-D', join(workshop, 'data'), '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`]
  const child = await spawnProgram(
    programs,
    'initdb',
    [...args, '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const [output, errors] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')])
  if (child.exitCode !== 0)
    throw failure(`Making a database in ${folders.dataDir} (initdb)`, errors || output, 'INITDB_FAILED')
}

/** Work of processes that were killed in the middle. What is not ours for certain is moved aside rather than deleted. */
async function clearLeftovers(folders: Folders): Promise<void> {
  for (const name of await readdir(folders.home)) {
    if (!name.startsWith('init-')) continue
    // An initdb whose parent was killed may still be writing in there; then a later start removes it.
    await rm(join(folders.home, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
  }
  if (existsSync(folders.data)) {
    await rename(folders.data, join(folders.home, `unfinished-${randomBytes(4).toString('hex')}`))
  }
}
