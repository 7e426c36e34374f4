/**
 * `npm run matrix [-- 14 16 …]`: everything that needs Postgres, against each supported major in turn.
 * Numbers choose the majors, all other arguments go to vitest. The servers come from npm, see test/servers/package.json.
 *
 * The server is started here and handed over by address, so that no test can fall back to another version unnoticed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, run, runTool, seconds } from './steps.mjs'

const supported = ['14', '15', '16', '17', '18']
const settings = { fsync: 'off', max_connections: '200', max_prepared_transactions: '20' }

const isMajor = (argument) => /^\d+$/.test(argument)
const asked = process.argv.slice(2).filter(isMajor)
const forVitest = process.argv.slice(2).filter((argument) => !isMajor(argument))
const unknown = asked.filter((major) => !supported.includes(major))
if (unknown.length > 0) {
  console.error(`matrix: Postgres ${unknown.join(', ')} is not supported, choose from ${supported.join(', ')}.`)
  process.exit(2)
}

if ((await run(process.execPath, ['scripts/build.mjs'])) !== 0) process.exit(1)
const { startEmbedded } = await import('../embedded/dist/index.js')

const results = []
for (const major of asked.length > 0 ? asked : supported) {
  console.log(`\nmatrix: Postgres ${major}`)
  const started = performance.now()
  const passed = await testOn(major)
  results.push({ major, passed, took: seconds(started) })
}

console.log()
for (const { major, passed, took } of results) {
  console.log(`Postgres ${major}  ${passed ? 'passed' : 'FAILED'}  ${took}`)
}
process.exit(results.every(({ passed }) => passed) ? 0 : 1)

async function testOn(major) {
  const folder = mkdtempSync(join(tmpdir(), 'ac-matrix-'))
  // The newest major is the one the package brings; the older ones are installed under names of their own.
  const binaries = major === supported.at(-1) ? {} : { binaries: join(root, 'node_modules', `pg${major}`) }
  const server = await startEmbedded({ dataDir: join(folder, 'data'), version: major, settings, ...binaries })
  try {
    const env = testEnvironment(major, server.url)
    return (
      (await runTool('vitest', ['run', '--project', 'postgres', '--project', 'guarantees', ...forVitest], { env })) ===
      0
    )
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function testEnvironment(major, url) {
  const env = {
    ...process.env,
    AFTERCOMMIT_TEST_MAJOR: major,
    AFTERCOMMIT_TEST_DATABASE_URL: url,
    AFTERCOMMIT_TEST_DATABASE_URL_14: url,
  }
  delete env.DATABASE_URL
  return env
}
