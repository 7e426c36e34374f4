/**
 * Where everything of one server lives.
 *
 *   <dataDir>/            .aftercommit, beside package.json
 *     lock/               who may start or stop (lock.ts)
 *     postgres/           home; a symbolic link to elsewhere when the server's user cannot get here
 *       data/             the cluster; belongs to the server's user
 *       socket/           the Unix socket; belongs to the server's user, closed to all others
 *       users/ links/ postgres.log pg_hba.conf server.json password
 *
 * Under root, home belongs to root and only data/ and socket/ to the server's user: root never writes through a folder
 * that a less trusted user could rearrange.
 */
import { existsSync } from 'node:fs'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Account } from './account.ts'
import { findHome } from './home.ts'
import { makeFolder, passable } from './ownership.ts'

export interface Folders {
  readonly dataDir: string
  readonly home: string
  readonly data: string
  readonly users: string
  readonly links: string
  readonly log: string
  readonly hba: string
  readonly record: string
  readonly password: string
}

/** The folder asked for, or the one from the environment, or `.aftercommit` beside the nearest package.json. */
export function chooseDataDir(asked: string | undefined, env: NodeJS.ProcessEnv, cwd: string): string {
  const chosen = asked || env.AFTERCOMMIT_DATA_DIR
  if (chosen) return resolve(cwd, chosen)
  let at = resolve(cwd)
  while (!existsSync(join(at, 'package.json'))) {
    if (at === dirname(at)) return join(resolve(cwd), '.aftercommit')
    at = dirname(at)
  }
  return join(at, '.aftercommit')
}

/** Makes the data folder and returns its real path, so that two spellings of one folder share one server. */
export async function makeDataDir(path: string, account: Account): Promise<string> {
  if (await makeFolder(path, passable(account), { recursive: true })) {
    await writeFile(join(path, '.gitignore'), '*\n') // a database does not belong into version control
  }
  await mkdir(join(path, 'lock'), { recursive: true })
  return realpath(path)
}

/** Finds or makes home. Call it under the lock. */
export async function openHome(dataDir: string, account: Account): Promise<Folders> {
  const home = await findHome(dataDir, account)
  const at = (name: string) => join(home, name)
  return {
    dataDir,
    home,
    data: at('data'),
    users: at('users'),
    links: at('links'),
    log: at('postgres.log'),
    hba: at('pg_hba.conf'),
    record: at('server.json'),
    password: at('password'),
  }
}
