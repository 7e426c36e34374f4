/**
 * Starts the servers of a test run once and stops them at its end. With AFTERCOMMIT_TEST_DATABASE_URL all tests run on
 * that server instead and nothing is started; those of a distribution's server are skipped.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import type { TestProject } from 'vitest/node'
import { findOlderPostgres, findSystemPostgres, STOCK } from '../../scripts/system-postgres.mjs'
import { memoryFolder } from './memory-folder.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    pg18Url: string
    /** Empty where there is none. */
    pg14Url: string
    /** A distribution's own, with JIT and its default settings; empty where there is none. */
    systemUrl: string
    /** True when AFTERCOMMIT_TEST_DATABASE_URL chose the server of all tests. */
    isServerGiven: boolean
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.AFTERCOMMIT_TEST_DATABASE_URL
  if (given) {
    project.provide('pg18Url', given)
    project.provide('pg14Url', process.env.AFTERCOMMIT_TEST_DATABASE_URL_14 ?? given)
    project.provide('systemUrl', '')
    project.provide('isServerGiven', true)
    return async () => {}
  }
  const folder = await mkdtemp(join(memoryFolder(), 'ac-test-'))
  // Under root the server runs as another user. Where that one cannot get in, its data would be kept elsewhere, on a disk.
  await chmod(folder, 0o755)
  const of14 = findOlderPostgres(14)
  const ofSystem = findSystemPostgres()
  const [newest, oldest, system] = await Promise.all([
    startEmbedded({ dataDir: join(folder, '18'), settings: QUICK }),
    // The oldest version we support. Where its binaries are missing, tests on it are skipped or fail, by older-postgres.ts.
    of14 === undefined
      ? undefined
      : startEmbedded({ dataDir: join(folder, '14'), settings: QUICK, binaries: of14, version: '14' }),
    ofSystem === undefined
      ? undefined
      : startEmbedded({ dataDir: join(folder, 'system'), settings: { ...STOCK, ...QUICK }, binaries: ofSystem }),
  ])
  project.provide('pg18Url', newest.url)
  project.provide('pg14Url', oldest?.url ?? '')
  project.provide('systemUrl', system?.url ?? '')
  project.provide('isServerGiven', false)
  return async () => {
    await Promise.all([newest, oldest, system].map((server) => server?.stop()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Nothing here survives a power cut, and many tests share a server. No plan depends on any of it. */
const QUICK = { fsync: 'off', full_page_writes: 'off', max_connections: '400', max_prepared_transactions: '20' }
