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
import { join } from 'node:path'
import { findProgram, howToGet, isCI, programs } from './programs.mjs'
import { run, runTool, seconds } from './steps.mjs'
import { countTests, slowestFiles } from './test-report.mjs'

const env = { ...process.env }
delete env.DATABASE_URL

const reportFolder = mkdtempSync(join(tmpdir(), 'aftercommit-test-'))
const report = join(reportFolder, 'report.json')
const steps = []
let missingPrograms = []

await step('programs', () => getPrograms())
const built = await step('build', () => run(process.execPath, ['scripts/build.mjs'], { env }))
await step('lint', () => runTool('biome', ['check', '--error-on-warnings', '.'], { env }))
await step('types', async () => (await types('tsconfig.json')) || (await types('web-console/tsconfig.json')))
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

function types(project) {
  return runTool('tsc', ['-p', project, '--noEmit'], { env })
}

function vitestArguments() {
  return ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...process.argv.slice(2)]
}

function getPrograms() {
  const isMissing = ({ name }) => findProgram(name) === undefined
  const missing = programs.filter(isMissing)
  if (missing.length === 0) {
    console.log(`found ${programs.map(({ name }) => name).join(', ')}`)
    return 0
  }
  if (mayInstall()) installWithApt([...new Set(missing.map(({ debian }) => debian))])
  missingPrograms = missing.filter(isMissing).map(({ name }) => name)
  if (missingPrograms.length === 0) return 0
  console.error(
    `NOT FOUND: ${missingPrograms.join(', ')}. ${isCI() ? 'That is a failure in CI.' : 'The tests that drive them are SKIPPED.'}\n` +
      `To get them ${howToGet(...missingPrograms)}`,
  )
  return isCI() ? 1 : 0
}

function mayInstall() {
  return process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
}

function installWithApt(packages) {
  console.log(`installing ${packages.join(', ')}`)
  const options = { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  spawnSync('apt-get', ['update', '-qq'], options)
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], options)
}

/** Prints each step, the slowest files and, last of all, the line `N passed, N failed`. True when anything failed. */
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
  const results = JSON.parse(readFileSync(report, 'utf8'))
  const { passed, failed: failures, skipped } = countTests(results)
  console.log('\nslowest files')
  for (const { file, seconds, tests } of slowestFiles(results, 15)) {
    console.log(`${seconds.toFixed(1).padStart(6)} s  ${file} (${tests} ${tests === 1 ? 'test' : 'tests'})`)
  }
  console.log()
  if (skipped > 0) console.log(`${skipped} skipped`)
  if (missingPrograms.length > 0) console.log(`not found, so not tested with: ${missingPrograms.join(', ')}`)
  console.log(`${passed} passed, ${failures} failed`)
  return failed
}
