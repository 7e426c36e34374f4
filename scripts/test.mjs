/**
 * `npm test`: everything. Gets what it needs, builds, lints, checks types, runs every test, and adds it up.
 *
 * Arguments go to vitest (`npm test -- test/log`). A failing step does not hide the later ones, except that nothing is
 * tested on a failed build. The developer's own DATABASE_URL is never touched; AFTERCOMMIT_TEST_DATABASE_URL names a
 * server to test on instead of the embedded one.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { run, runTool, seconds } from './steps.mjs'
import { findSystemPostgres } from './system-postgres.mjs'

/** Programs that some tests drive, and the Debian package each comes from. */
const programs = [
  { program: 'pgbouncer', debian: 'pgbouncer' },
  { program: 'psql', debian: 'postgresql-client' },
  { program: 'pg_dump', debian: 'postgresql-client' },
  { program: 'redis-server', debian: 'redis-server' },
  { program: 'chromium', debian: 'chromium' },
  { program: "a system's postgres", debian: 'postgresql', isInstalled: () => findSystemPostgres() !== undefined },
]

const isCI = process.env.CI === 'true'
const env = { ...process.env }
delete env.DATABASE_URL

const reportFolder = mkdtempSync(join(tmpdir(), 'aftercommit-test-'))
const report = join(reportFolder, 'report.json')
const steps = []
let missingPrograms = []

await step('programs', () => getPrograms())
const built = await step('build', () => run(process.execPath, ['scripts/build.mjs'], { env }))
await step('lint', () => runTool('biome', ['check', '--error-on-warnings', '.'], { env }))
await step('types', () => runTool('tsc', ['-p', 'tsconfig.json', '--noEmit'], { env }))
if (built) await step('tests', () => runTool('vitest', vitestArguments(), { env }))

const failed = summarise()
rmSync(reportFolder, { recursive: true, force: true })
process.exit(failed ? 1 : 0)

async function step(name, work) {
  console.log(`\n── ${name}`)
  const started = performance.now()
  const passed = (await work()) === 0
  steps.push({ name, passed, took: seconds(started) })
  return passed
}

function vitestArguments() {
  return ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...process.argv.slice(2)]
}

function getPrograms() {
  const missing = programs.filter((program) => !isThere(program))
  if (missing.length === 0) {
    console.log(`found ${programs.map(({ program }) => program).join(', ')}`)
    return 0
  }
  const packages = [...new Set(missing.map(({ debian }) => debian))]
  if (mayInstall()) installWithApt(packages)
  missingPrograms = missing.filter((program) => !isThere(program)).map(({ program }) => program)
  if (missingPrograms.length === 0) return 0
  console.error(
    `NOT FOUND: ${missingPrograms.join(', ')}. ${isCI ? 'That is a failure under CI=true.' : 'The tests that drive them are SKIPPED.'}\n` +
      `To get them on Debian or Ubuntu: apt-get install ${packages.join(' ')}`,
  )
  return isCI ? 1 : 0
}

function isThere({ program, isInstalled: look = () => isInstalled(program) }) {
  return look()
}

function isInstalled(program) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.some((folder) => folder !== '' && existsSync(join(folder, program)))
}

function mayInstall() {
  return process.platform === 'linux' && process.getuid?.() === 0 && isInstalled('apt-get')
}

function installWithApt(packages) {
  console.log(`installing ${packages.join(', ')}`)
  const options = { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  spawnSync('apt-get', ['update', '-qq'], options)
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], options)
}

/** Prints each step and, last of all, the line `N passed, N failed`. True when anything failed. */
function summarise() {
  console.log('\n── summary')
  for (const { name, passed, took } of steps) {
    console.log(`${name.padEnd(10)} ${(passed ? 'passed' : 'FAILED').padEnd(8)} ${took}`)
  }
  const failed = steps.some(({ passed }) => !passed)
  if (!existsSync(report)) {
    console.log('no test ran to its end, so there is nothing to count')
    return true
  }
  const counts = JSON.parse(readFileSync(report, 'utf8'))
  const skipped = counts.numPendingTests + counts.numTodoTests
  if (skipped > 0) console.log(`${skipped} skipped`)
  if (missingPrograms.length > 0) console.log(`not found, so not tested with: ${missingPrograms.join(', ')}`)
  console.log(`${counts.numPassedTests} passed, ${counts.numFailedTests + filesThatDidNotLoad(counts)} failed`)
  return failed
}

/** A test file that breaks before its first test has no failed test in the report; it still counts as one failure. */
function filesThatDidNotLoad({ testResults }) {
  return testResults.filter((file) => {
    return file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')
  }).length
}
