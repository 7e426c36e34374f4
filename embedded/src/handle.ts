/** What a caller holds while it uses a server, and giving it back. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { toEmbeddedError } from './errors.ts'
import type { Folders } from './folders.ts'
import { withLock } from './lock.ts'
import { findPostmaster, stopPostmaster } from './postmaster.ts'
import type { Programs } from './programs.ts'
import type { Server } from './server.ts'
import { toUrl } from './settings.ts'
import { removeSocketFolder } from './socket.ts'
import { countUsers } from './users.ts'

export interface EmbeddedPostgres {
  /** A connection string for node-postgres and libpq. */
  readonly url: string
  /** The parts of it, for drivers that want them apart: a host that begins with "/" is a folder with a Unix socket. */
  readonly host: string
  readonly port: number
  readonly password: string | undefined
  /** Such as "18.4". */
  readonly version: string
  readonly dataDir: string
  /** True when the server was already running. */
  readonly adopted: boolean
  /** The process of the server. */
  readonly pid: number
  /** Gives the server back; the last user to do so stops it and waits until it is gone. Safe to call again. */
  stop(): Promise<void>
}

interface Use {
  readonly server: Server
  readonly version: string
  readonly adopted: boolean
  readonly folders: Folders
  readonly programs: Programs
  /** The file that says we use the server (users.ts). */
  readonly user: string
}

export function toHandle(use: Use): EmbeddedPostgres {
  const { address, pid } = use.server
  let stopping: Promise<void> | undefined
  return {
    url: toUrl(address),
    host: address.host,
    port: address.port,
    password: address.listen === 'tcp' ? address.password : undefined,
    version: use.version,
    dataDir: use.folders.dataDir,
    adopted: use.adopted,
    pid,
    stop() {
      stopping ??= leave(use)
      return stopping
    },
  }
}

/** The server may have died and been started anew since we joined it, so the one to stop is looked up again. */
async function leave({ server, folders, programs, user }: Use): Promise<void> {
  try {
    await withLock(join(folders.dataDir, 'lock'), async () => {
      await rm(user, { force: true })
      if ((await countUsers(folders.users)) > 0) return
      const running = await findPostmaster(folders.data, programs.account)
      if (running) await stopPostmaster(running.pid, folders.data, programs)
      await removeSocketFolder(folders.home)
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw toEmbeddedError(error, `Stopping the embedded Postgres of ${folders.dataDir}`, 'STOP_FAILED')
    }
    // Somebody deleted the data folder under us: there is nothing left to coordinate, but still a server to stop.
    await stopPostmaster(server.pid, folders.data, programs)
  }
}
