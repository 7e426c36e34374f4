/**
 * Which system user the server runs as, and what that user may touch.
 * PostgreSQL refuses to run as root, so under root the server runs as `nobody` and every file it needs must be open to
 * that user. Everybody else runs it as themselves.
 */
import { access, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EmbeddedError } from './errors.ts'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** True when the server runs as somebody else than this process, which only root can do. */
  readonly switched: boolean
}

export async function serverAccount(): Promise<Account> {
  const uid = ownUid()
  if (uid !== 0) return { name: 'self', uid, gid: process.getegid?.() ?? 0, switched: false }
  const account = findAccount(await readFile('/etc/passwd', 'utf8').catch(() => ''))
  if (account === undefined) {
    throw new EmbeddedError(
      'NO_PERMISSION',
      'This process is root, PostgreSQL refuses to run as root, and /etc/passwd has neither "nobody" nor "postgres", ' +
        'so no server was started. Add one of these users, run as another user, or set DATABASE_URL.',
    )
  }
  return account
}

/** The user of this process; -1 on systems without numeric users. */
export function ownUid(): number {
  return process.geteuid?.() ?? -1
}

/** `nobody`, or else `postgres`, from the text of /etc/passwd. Some systems write nobody's number as -2. */
export function findAccount(passwd: string): Account | undefined {
  const entries = passwd.split('\n').map((line) => line.split(':'))
  for (const name of ['nobody', 'postgres']) {
    const entry = entries.find((fields) => fields[0] === name)
    const uid = Number.parseInt(entry?.[2] ?? '', 10)
    const gid = Number.parseInt(entry?.[3] ?? '', 10)
    if (Number.isInteger(uid) && Number.isInteger(gid) && uid !== 0) {
      return { name, uid: uid >>> 0, gid: gid >>> 0, switched: true }
    }
  }
  return undefined
}

/** The spawn options that make a child run as the account. */
export function runAs(account: Account): { uid?: number; gid?: number } {
  return account.switched ? { uid: account.uid | 0, gid: account.gid | 0 } : {}
}

/**
 * Whether the account can get to a path and has the wanted rights there (4 read, 1 enter or execute). For another user this reads the mode bits of the path and
 * of every folder above it; access control lists are not seen, which at worst costs a copy that was not needed.
 */
export async function canUse(path: string, account: Account, wanted: number): Promise<boolean> {
  if (!account.switched) return access(path, wanted).then(yes, no)
  let at = await realpath(path)
  if (!allows(await stat(at), account, wanted)) return false
  while (at !== dirname(at)) {
    at = dirname(at)
    if (!allows(await stat(at), account, 1)) return false
  }
  return true
}

/** Whether mode bits grant an account all the wanted rights (4 read, 2 write, 1 enter). */
export function allows(file: { mode: number; uid: number; gid: number }, account: Account, wanted: number): boolean {
  const shift = file.uid === account.uid ? 6 : file.gid === account.gid ? 3 : 0
  return ((file.mode >> shift) & wanted) === wanted
}

const yes = () => true
const no = () => false
