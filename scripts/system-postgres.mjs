/**
 * The PostgreSQL of the system's own packages, for tests and benches: most users run one of these. Unlike the embedded
 * one it has JIT, so a plan that is estimated too dear is compiled, which takes longer than most statements do.
 *
 * Hand both to the launcher: startEmbedded({ dataDir, binaries: findSystemPostgres(), settings: { ...STOCK, … } }).
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Debian and Ubuntu; Fedora and Red Hat; Homebrew on both kinds of Mac. Each has a folder per major version. */
const homes = [
  { parent: '/usr/lib/postgresql', folder: /^(\d+)$/ },
  { parent: '/usr', folder: /^pgsql-(\d+)$/ },
  { parent: '/opt/homebrew/opt', folder: /^postgresql@(\d+)$/ },
  { parent: '/usr/local/opt', folder: /^postgresql@(\d+)$/ },
]

const oldest = 14

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
  const found = homes.flatMap(({ parent, folder }) =>
    list(parent).flatMap((name) => {
      const major = Number(folder.exec(name)?.[1])
      const path = join(parent, name)
      return major >= oldest && existsSync(join(path, 'bin', 'postgres')) ? [{ major, path }] : []
    }),
  )
  return found.sort((a, b) => b.major - a.major)[0]?.path
}

function list(folder) {
  return existsSync(folder) ? readdirSync(folder) : []
}
