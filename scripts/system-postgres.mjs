/**
 * PostgreSQL servers for tests and benches: those of the system's own packages, and older majors from npm.
 *
 * Most users run one of the system's packages. Unlike the embedded one it has JIT, so a plan that is estimated too dear
 * is compiled, which takes longer than most statements do.
 *
 * Hand both to the launcher: startEmbedded({ dataDir, binaries: findSystemPostgres(), settings: { ...STOCK, … } }).
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './steps.mjs'

/** Debian and Ubuntu; Fedora and Red Hat; Homebrew on both kinds of Mac. Each has a folder per major version. */
const homes = [
  { parent: '/usr/lib/postgresql', folder: /^(\d+)$/ },
  { parent: '/usr', folder: /^pgsql-(\d+)$/ },
  { parent: '/opt/homebrew/opt', folder: /^postgresql@(\d+)$/ },
  { parent: '/usr/local/opt', folder: /^postgresql@(\d+)$/ },
]

/** The majors that aftercommit supports. The package aftercommit-embedded brings the newest. */
export const supportedMajors = ['14', '15', '16', '17', '18']

/** Settings the launcher would choose otherwise, as PostgreSQL itself has them. */
export const STOCK = {
  max_connections: '100',
  max_prepared_transactions: '0',
  shared_buffers: '128MB',
  min_wal_size: '80MB',
  max_wal_size: '1GB',
}

/** The folder with its bin/; of several versions the newest. Undefined when none is installed that we support. */
export function findSystemPostgres() {
  return systemPostgres().sort((a, b) => b.major - a.major)[0]?.path
}

/** The binaries of an older major: the npm package of test/servers, or else the system's. Undefined when there are none. */
export function findOlderPostgres(major) {
  const fromNpm = join(root, 'node_modules', `pg${major}`)
  if (existsSync(join(fromNpm, 'native', 'bin'))) return fromNpm
  return systemPostgres().find((found) => found.major === Number(major))?.path
}

/** npm has the older majors for Linux on x64 alone. */
export const hasOlderMajorsFromNpm = process.platform === 'linux' && process.arch === 'x64'

/** The command by which a person gets an older major. */
export function howToGetPostgres(major) {
  if (hasOlderMajorsFromNpm)
    return 'npm ci (the servers are optional dependencies of test/servers: --omit=optional leaves them out)'
  return process.platform === 'darwin' ? `brew install postgresql@${major}` : `apt-get install postgresql-${major}`
}

function systemPostgres() {
  return homes.flatMap(({ parent, folder }) =>
    list(parent).flatMap((name) => {
      const major = Number(folder.exec(name)?.[1])
      const path = join(parent, name)
      return major >= Number(supportedMajors[0]) && existsSync(join(path, 'bin', 'postgres')) ? [{ major, path }] : []
    }),
  )
}

function list(folder) {
  return existsSync(folder) ? readdirSync(folder) : []
}
