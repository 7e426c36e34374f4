/**
 * A clone of the repository works: the README's two commands on a machine with Node and nothing else, an empty home,
 * install scripts blocked. Only the cache of npm is the caller's own; what it lacks comes over the network.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'aftercommit-clone-'))
const clone = join(place, 'clone')
const home = join(place, 'home')
const { DATABASE_URL: _url, AFTERCOMMIT_TEST_DATABASE_URL: _testUrl, VITEST: _vitest, ...inherited } = process.env
const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
const env = { ...inherited, HOME: home, npm_config_cache: cache.trim(), NODE_ENV: undefined }

beforeAll(() => {
  mkdirSync(home)
  // What git has, with the changes that are not committed yet: the test speaks of the tree it stands in.
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' })
  for (const file of files.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(root, file), join(clone, file))
  }
  execFileSync('npm', ['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: clone,
    env,
    stdio: 'pipe',
  })
}, 300_000)

afterAll(() => rmSync(place, { recursive: true, force: true }))

test('npm start shows committed orders, stops on Ctrl-C, and survives kill -9', async () => {
  const first = start()
  await first.line(/order\.placed/)
  first.interrupt()
  await first.ended
  expect(first.output()).toContain('stopped')
  expect(serverIsUp()).toBe(false)

  const second = start()
  await second.line(/order\.placed/)
  second.kill()
  await second.ended
  expect(serverIsUp()).toBe(true)

  const third = start()
  await third.line(/joining the server that runs already/)
  await third.line(/order\.placed/)
  third.interrupt()
  await third.ended
  expect(third.output()).toContain('stopped')
  expect(serverIsUp()).toBe(false)
  expect(readdirSync(home).filter((name) => name !== '.npm')).toEqual([])
})

// One file of tests: the rest of the suite has run where this test runs.
test('npm test builds, checks and tests the clone', () => {
  const output = execFileSync('npm', ['test', '--', '--project', 'fast', 'test/events/pattern.test.ts'], {
    cwd: clone,
    env,
    encoding: 'utf8',
    stdio: 'pipe',
  })
  expect(output).toMatch(/^\d+ passed, 0 failed/m)
}, 300_000)

/** The commands run in process groups of their own, as a terminal would have it. */
function start() {
  const child: ChildProcess = spawn('npm', ['start'], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const waiting = new Set<() => void>()
  const hear = (chunk: Buffer) => {
    output += chunk
    for (const look of waiting) look()
  }
  child.stdout?.on('data', hear)
  child.stderr?.on('data', hear)
  // npm itself ends by the signal; the output is closed when the last process of the group has ended.
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const group = (signal: NodeJS.Signals) => process.kill(-child.pid!, signal)
  return {
    ended,
    output: () => output,
    interrupt: () => group('SIGINT'),
    kill: () => group('SIGKILL'),
    line: (pattern: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const look = () => {
          if (!pattern.test(output)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
        void ended.then(() => reject(new Error(`npm start ended before ${pattern}:\n${output}`)))
      }),
  }
}

function serverIsUp(): boolean {
  const file = join(clone, '.aftercommit/postgres/data/postmaster.pid')
  if (!existsSync(file)) return false
  try {
    process.kill(Number(readFileSync(file, 'utf8').split('\n')[0]), 0)
    return true
  } catch {
    return false
  }
}
