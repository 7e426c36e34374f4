/**
 * `npm run matrix [-- 14 22 … | --help]`: the tests that need Postgres on each supported major of Postgres, and those and
 * the fast ones on each further version of Node. Numbers choose versions, all other arguments go to vitest.
 *
 * Servers come from npm or the system, see system-postgres.mjs; Node comes from npm, see node-binaries.mjs. A server is
 * started here and handed over by address, so that no test can run on another version unnoticed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getNode } from './node-binaries.mjs'
import { run, runTool, seconds } from './steps.mjs'
import { findOlderPostgres, howToGetPostgres, supportedMajors } from './system-postgres.mjs'

const nodeMajors = ['22', '24', '26']
const settings = { fsync: 'off', max_connections: '400', max_prepared_transactions: '20' }

if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
  console.log(`npm run matrix [-- VERSION …] [arguments of vitest]

Runs the tests that need Postgres on each supported major of Postgres, and those and the fast ones on each further
version of Node.

  VERSION   Postgres ${supportedMajors.join(', ')}; Node ${nodeMajors.join(', ')}. Default: all of them
  --help    Show this.

The exit code is 1 when tests fail on a version, and 2 for a version that does not exist.`)
  process.exit(0)
}

const isNumber = (argument) => /^\d+$/.test(argument)
const asked = process.argv.slice(2).filter(isNumber)
const forVitest = process.argv.slice(2).filter((argument) => !isNumber(argument))
const known = [...supportedMajors, ...nodeMajors]
const unknown = asked.filter((major) => !known.includes(major))
if (unknown.length > 0) {
  console.error(
    `matrix: ${unknown.join(', ')} is neither a supported Postgres (${supportedMajors.join(', ')}) nor a Node of the matrix (${nodeMajors.join(', ')}).`,
  )
  process.exit(2)
}

if ((await run(process.execPath, ['scripts/build.mjs'])) !== 0) process.exit(1)
const { startEmbedded } = await import('../embedded/dist/index.js')

const results = []
for (const major of asked.length > 0 ? asked : known) {
  const isNode = nodeMajors.includes(major)
  const name = `${isNode ? 'Node' : 'Postgres'} ${major}`
  console.log(`\nmatrix: ${name}`)
  const started = performance.now()
  const passed = await (isNode ? testOnNode(major) : testOnPostgres(major)).catch((error) => {
    console.error(`matrix: ${error.message}`)
    return false
  })
  results.push({ name, passed, took: seconds(started) })
}

console.log()
for (const { name, passed, took } of results) {
  console.log(`${name.padEnd(12)} ${passed ? 'passed' : 'FAILED'}  ${took}`)
}
process.exit(results.every(({ passed }) => passed) ? 0 : 1)

async function testOnPostgres(major) {
  const server = await startServer(major)
  try {
    return await vitest(['postgres', 'guarantees'], { env: testEnvironment(server.url) })
  } finally {
    await server.stop()
  }
}

/** Tests start processes of their own with the Node that runs them. */
async function testOnNode(major) {
  const node = await getNode(major)
  await run(node, ['--version'])
  return await vitest(['fast', 'postgres', 'guarantees'], { env: testEnvironment(), node })
}

async function vitest(projects, options) {
  const chosen = projects.flatMap((project) => ['--project', project])
  return (await runTool('vitest', ['run', ...chosen, ...forVitest], options)) === 0
}

async function startServer(major) {
  const folder = mkdtempSync(join(tmpdir(), 'ac-matrix-'))
  const server = await startEmbedded({ dataDir: join(folder, 'data'), version: major, settings, ...binariesOf(major) })
  return {
    url: server.url,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The newest major is the one that aftercommit-embedded brings. */
function binariesOf(major) {
  if (major === supportedMajors.at(-1)) return {}
  const binaries = findOlderPostgres(major)
  if (binaries === undefined)
    throw new Error(`PostgreSQL ${major} is not installed; to get it: ${howToGetPostgres(major)}`)
  return { binaries }
}

/** With a server, all tests run on it; without, on those that the suite starts itself. */
function testEnvironment(url) {
  const env = { ...process.env }
  delete env.DATABASE_URL
  return url === undefined ? env : { ...env, AFTERCOMMIT_TEST_DATABASE_URL: url, AFTERCOMMIT_TEST_DATABASE_URL_14: url }
}
