/** The folder of the Unix socket, which must be close at hand, closed to others, and have a short path. */
import { chmod, lstat, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, ownUid } from './account.ts'
import { EmbeddedError } from './errors.ts'
import { give, makeFolder, otherOwner, shortHash } from './ownership.ts'

/**
 * The folder for the Unix socket. The system allows only short socket paths (and reports a long one as something else),
 * so a deep project gets a folder below the temporary one.
 */
export async function openSocketFolder(home: string, account: Account): Promise<string> {
  const candidates = [join(home, 'socket'), temporaryFolder(home)]
  const folder = candidates.find(fitsSocket)
  if (folder === undefined) {
    throw new EmbeddedError(
      'SOCKET_PATH_TOO_LONG',
      `The path of a Unix socket may have at most ${MAX_SOCKET_PATH} bytes; both ${candidates.join(' and ')} are too ` +
        'long for one, so no server was started. Set AFTERCOMMIT_DATA_DIR or TMPDIR to a shorter path.',
    )
  }
  await makeFolder(folder, 0o700)
  const found = await lstat(folder)
  // Under root the folder may still be root's, when its maker died before handing it over.
  const trusted = found.isDirectory() && [ownUid(), account.uid].includes(found.uid)
  if (!trusted) throw otherOwner(folder, found.uid)
  await chmod(folder, 0o700)
  await give(folder, account)
  return folder
}

/** Takes away the folder below the temporary one, if there was one. It is empty once the server has stopped. */
export async function removeSocketFolder(home: string): Promise<void> {
  await rmdir(temporaryFolder(home)).catch(() => undefined)
}

function temporaryFolder(home: string): string {
  return join(tmpdir(), `aftercommit-${ownUid()}-${shortHash(home)}`)
}

/** Linux counts 108 bytes with the closing zero, macOS and the BSDs 104. */
const MAX_SOCKET_PATH = process.platform === 'linux' ? 107 : 103

export function fitsSocket(folder: string): boolean {
  return Buffer.byteLength(join(folder, '.s.PGSQL.5432')) <= MAX_SOCKET_PATH
}
