/**
 * Who uses a server. Every handle is one file that names its process; a file whose process is gone counts for nothing,
 * so a killed process cannot keep a server alive. All of this happens under the lock.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive, ownIdentity, readIdentity } from './processes.ts'

/** Adds a user and returns its file. One process may be several users: each handle stops on its own. */
export async function addUser(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `${process.pid}-${randomBytes(6).toString('hex')}`)
  await writeFile(file, JSON.stringify(ownIdentity()), { mode: 0o600 })
  return file
}

/** How many living users are left, forgetting the dead ones. */
export async function countUsers(folder: string): Promise<number> {
  let living = 0
  for (const name of await readdir(folder)) {
    const file = join(folder, name)
    const user = await readIdentity(file)
    if (user && isAlive(user)) living++
    else await rm(file, { force: true })
  }
  return living
}
