/** Folders that belong to the right user and to nobody else. */
import { createHash } from 'node:crypto'
import { chmod, chown, lstat, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Account, canUse, ownUid } from './account.ts'
import { EmbeddedError } from './errors.ts'

/** Makes a folder with exactly this mode, whatever the umask. False when it was there, in which case it is not touched. */
export async function makeFolder(path: string, mode: number, options: { recursive?: boolean } = {}): Promise<boolean> {
  if (options.recursive) await mkdir(dirname(path), { recursive: true })
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  await chmod(path, mode)
  return true
}

/** Hands a file or folder to the server's user. */
export async function give(path: string, account: Account): Promise<void> {
  if (account.switched) await chown(path, account.uid, account.gid)
}

export function shortHash(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 16)
}

/** Folders the server's user must pass through are open for passing, not for listing. */
export function passable(account: Account): number {
  return account.switched ? 0o711 : 0o700
}

/** Whether the account can pass through a folder and all above it; reading it is not needed. */
export async function canEnter(folder: string, account: Account): Promise<boolean> {
  return canUse(folder, account, 1)
}

/** A shared place like /tmp may hold a folder of that name made by somebody else to be trusted by us. */
export async function checkOwn(folder: string): Promise<void> {
  if (ownUid() === -1) return
  const found = await lstat(folder)
  if (found.isDirectory() && found.uid === ownUid() && (found.mode & 0o022) === 0) return
  throw otherOwner(folder, found.uid)
}

export function otherOwner(path: string, uid: number): EmbeddedError {
  return new EmbeddedError(
    'NO_PERMISSION',
    `${path} belongs to user ${uid} or is open to others, and this process is user ${ownUid()}, so it was not used. ` +
      'Run as the user who made it, remove it, or set AFTERCOMMIT_DATA_DIR to another folder.',
  )
}

/** The first of several folders that can be made, is ours alone to write to, and is open to the account. */
export async function firstOwnFolder(candidates: readonly string[], account: Account): Promise<string> {
  const reasons: string[] = []
  for (const folder of candidates) {
    try {
      await makeFolder(folder, passable(account))
      await checkOwn(folder)
      if (await canEnter(folder, account)) return folder
      reasons.push(`"${account.name}" cannot reach ${folder}`)
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error))
    }
  }
  throw new EmbeddedError(
    'NO_PERMISSION',
    `No folder could be found that this process may write to and the server's user may read: ${reasons.join('; ')}. ` +
      'Make one of them usable, or set DATABASE_URL.',
  )
}
