/**
 * Programs that some tests drive, and the Debian package of each. A test asks `hasProgram` of test/support/programs.ts,
 * `npm test` installs those that are missing where it may.
 */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findSystemPostgres } from './system-postgres.mjs'

export const programs = [
  { name: 'pgbouncer', debian: 'pgbouncer' },
  { name: 'psql', debian: 'postgresql-client' },
  { name: 'pg_dump', debian: 'postgresql-client' },
  { name: 'redis-server', debian: 'redis-server' },
  { name: 'chromium', debian: 'chromium', otherNames: ['chromium-browser', 'google-chrome'] },
  { name: 'curl', debian: 'curl' },
  { name: 'python3', debian: 'python3' },
  { name: 'git', debian: 'git' },
  { name: "a system's postgres", debian: 'postgresql', find: findSystemPostgres },
]

/** Folders where servers and Homebrew's programs are, beside those of PATH. */
const moreFolders = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin']

/** The path of a program, or undefined when this machine does not have it. */
export function findProgram(name) {
  const program = programs.find((one) => one.name === name)
  if (program === undefined) throw new Error(`${name} is not in the list of scripts/programs.mjs; add it there.`)
  if (program.find !== undefined) return program.find()
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...moreFolders].filter((folder) => folder !== '')
  const names = [name, ...(program.otherNames ?? [])]
  return folders.flatMap((folder) => names.map((one) => join(folder, one))).find((path) => existsSync(path))
}

/** The command by which a person gets a program. */
export function howToGet(...names) {
  const packages = programs.filter(({ name }) => names.includes(name)).map(({ debian }) => debian)
  return `on Debian or Ubuntu: apt-get install ${[...new Set(packages)].join(' ')}`
}

/** CI services set CI to "true" or "1"; people turn it off with "false" or "0". In CI nothing is skipped. */
export function isCI(env = process.env) {
  return !['', '0', 'false'].includes((env.CI ?? '').toLowerCase())
}
