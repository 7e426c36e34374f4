/**
 * Starts the servers of a test run once and stops them at its end. With AFTERCOMMIT_TEST_DATABASE_URL everything runs on
 * that server instead, and nothing is started.
 */
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type EmbeddedPostgres, startEmbedded } from 'aftercommit-embedded'
import type { TestProject } from 'vitest/node'
import { memoryFolder } from './memory-folder.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    pg18Url: string
    pg14Url: string
  }
}

const PG14 = fileURLToPath(new URL('../../node_modules/pg14', import.meta.url))

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.AFTERCOMMIT_TEST_DATABASE_URL
  if (given) {
    project.provide('pg18Url', given)
    project.provide('pg14Url', process.env.AFTERCOMMIT_TEST_DATABASE_URL_14 ?? given)
    return async () => {}
  }
  const folder = await mkdtemp(join(memoryFolder(), 'ac-test-'))
  // Under root the server runs as another user. Where that one cannot get in, its data would be kept elsewhere, on a disk.
  await chmod(folder, 0o755)
  const servers = await Promise.all([
    start(join(folder, '18')),
    // The oldest version we support, where its binaries are installed; elsewhere those tests run on the newest.
    ...(existsSync(PG14) ? [start(join(folder, '14'), PG14)] : []),
  ])
  const [newest, oldest = newest] = servers as [EmbeddedPostgres, EmbeddedPostgres?]
  project.provide('pg18Url', newest.url)
  project.provide('pg14Url', oldest.url)
  return async () => {
    await Promise.all(servers.map((server) => server.stop()))
    await rm(folder, { recursive: true, force: true })
  }
}

function start(dataDir: string, binaries?: string): Promise<EmbeddedPostgres> {
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200', max_prepared_transactions: '20' }
  return startEmbedded({ dataDir, settings, ...(binaries === undefined ? {} : { binaries }) })
}
