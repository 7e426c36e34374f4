/** How the PostgreSQL programs are run: as which user, in which folder, with which environment. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Account, runAs } from './account.ts'
import { EmbeddedError } from './errors.ts'

export interface Programs {
  /** The folder with bin/, lib/ and share/. */
  readonly native: string
  /** Folders with the libraries, links first; none for an installed PostgreSQL. */
  readonly libraries: readonly string[]
  readonly account: Account
}

/** Starts a program. Its environment is made new: secrets of the application are none of the server's business. */
export async function spawnProgram(
  programs: Programs,
  name: 'initdb' | 'postgres',
  args: readonly string[],
  options: { stdio: ('ignore' | 'pipe' | number)[]; detached?: boolean },
): Promise<ChildProcess> {
  const child = spawn(join(programs.native, 'bin', name), args, {
    ...options,
    ...runAs(programs.account),
    cwd: '/',
    env: environment(programs.libraries),
    windowsHide: true,
  })
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw cannotRun(name, programs, error as NodeJS.ErrnoException)
  }
  return child
}

function environment(libraries: readonly string[]): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, LC_ALL: 'C' }
  if (libraries.length > 0) env.LD_LIBRARY_PATH = libraries.join(':')
  for (const name of ['TZ', 'SystemRoot', 'TEMP']) if (process.env[name] !== undefined) env[name] = process.env[name]
  return env
}

function cannotRun(name: string, programs: Programs, error: NodeJS.ErrnoException): EmbeddedError {
  const program = join(programs.native, 'bin', name)
  if (error.code === 'ENOENT') {
    return new EmbeddedError(
      'UNSUPPORTED_PLATFORM',
      `${program} could not be run, so no server was started: the file, or the system's own loader that it names, is ` +
        'missing. Reinstall the package, or set DATABASE_URL to a Postgres you run yourself.',
      { cause: error },
    )
  }
  return new EmbeddedError(
    error.code === 'EACCES' || error.code === 'EPERM' ? 'NO_PERMISSION' : 'START_FAILED',
    `${program} could not be run as ${programs.account.switched ? `"${programs.account.name}"` : 'this user'} ` +
      `(${error.code}), so no server was started. Check that the folder allows programs to run, or set DATABASE_URL.`,
    { cause: error },
  )
}
