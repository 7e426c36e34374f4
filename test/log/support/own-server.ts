/** A server that a test may crash, copy and configure. Stopped and deleted with the test. */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type EmbeddedPostgres, startEmbedded } from 'aftercommit-embedded'
import { onTestFinished } from 'vitest'
import { findSystemPostgres, STOCK } from '../../../scripts/system-postgres.mjs'
import { type ServerKind, usualServer } from '../../support/database.ts'
import { memoryFolder } from '../../support/memory-folder.ts'
import { olderPostgres } from '../../support/older-postgres.ts'

export interface OwnServer {
  readonly dataDir: string
  readonly url: string
  readonly pid: number
  /** After a crash or a stop, on the same data. */
  start(): Promise<void>
  stop(): Promise<void>
}

export async function ownServer({
  major = usualServer(),
  settings = {},
  dataDir,
}: {
  major?: ServerKind
  settings?: Record<string, string>
  dataDir?: string
} = {}): Promise<OwnServer> {
  const folder = dataDir ?? (await temporaryFolder())
  const options = {
    dataDir: folder,
    settings: { ...(major === 'system' && STOCK), ...QUICK, ...settings },
    ...binariesOf(major),
  }
  let server: EmbeddedPostgres = await startEmbedded(options)
  onTestFinished(() => server.stop())
  return {
    dataDir: folder,
    get url() {
      return server.url
    },
    get pid() {
      return server.pid
    },
    async start() {
      server = await startEmbedded(options)
    },
    stop: () => server.stop(),
  }
}

/** The data of a stopped server, as a base backup would have it; a server started on it is a standby until promoted. */
export async function copyAsStandby(server: OwnServer): Promise<string> {
  const copy = await temporaryFolder()
  // Not fs.cp: files keep their owner.
  await promisify(execFile)('cp', ['-a', server.dataDir, copy])
  await writeFile(join(copy, 'postgres', 'data', 'standby.signal'), '')
  return copy
}

const QUICK = { fsync: 'off', shared_buffers: '16MB', max_wal_size: '64MB' }

export async function temporaryFolder(): Promise<string> {
  const parent = await mkdtemp(join(memoryFolder(), 'ac-own-'))
  // The server may run as another user.
  await chmod(parent, 0o755)
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  return join(parent, 'data')
}

function binariesOf(major: ServerKind): { binaries?: string } {
  if (major === 14) return { binaries: olderPostgres(14) }
  const system = major === 'system' ? findSystemPostgres() : undefined
  return system === undefined ? {} : { binaries: system }
}
