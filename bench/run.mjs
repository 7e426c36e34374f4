/**
 * `npm run bench -- [case …] [journeys] [--server embedded|system|postgres://…] [--seconds 2] [--rounds 5] [--record]`:
 * ratios, measured in one run on one server with one Node. The variants of a case take turns, so that a slow moment of
 * the machine meets them all; each figure is the median of its rounds. Absolute figures vary by a factor of two between
 * machines and days: only ratios count. The exit code is 1 when a goal is missed.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../scripts/steps.mjs'
import { parseBenchArguments, UsageError } from './arguments.mjs'
import { anyMissed, verdictOf } from './goals.mjs'
import { describeRun, recordRun } from './record.mjs'

const cases = [
  'append',
  'batch',
  'bell',
  'read',
  'latency',
  'lag',
  'idle',
  'catchup',
  'handler',
  'backlog',
  'memory',
  'condition',
  'template',
  'deliver',
  'bloat',
  'hanging',
  'scheduled',
  'webhook',
  'broadcast',
  'hook',
  'observe',
  'search',
  'workflow',
  'matching',
  'redis',
  'cache',
  'live',
]

process.exit(await main())

async function main() {
  try {
    return await play(parseBenchArguments(process.argv.slice(2), { cases, journeys: [] }))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(error.message)
    return 2
  }
}

async function play(asked) {
  const built = spawnSync(process.execPath, [join(root, 'scripts/build.mjs'), '--quiet'], { stdio: 'inherit' })
  if (built.status !== 0) return 1
  // The launcher is part of what was just built.
  const { startBenchServer } = await import('./server.mjs')
  const server = await startBenchServer(asked.server)
  const about = describeRun(server.about, asked)
  const results = []
  try {
    printConditions(about)
    for (const name of asked.cases) {
      const { run } = await import(`./cases/${name}.mjs`)
      const result = { name, ...(await run({ url: server.url, ms: asked.ms, rounds: asked.rounds ?? 5 })) }
      results.push(result)
      print(result)
    }
  } finally {
    await server.stop()
  }
  if (asked.record) console.log(`recorded in ${recordRun(about, results)}`)
  return anyMissed(results) ? 1 : 0
}

function printConditions({ server: { kind, version, jit, fsync }, node, cpu, commit }) {
  console.log(`PostgreSQL ${version}, server ${kind}, jit ${jit}, fsync ${fsync}`)
  console.log(`Node ${node}, ${cpu}${commit === null ? '' : `, commit ${commit}`}\n`)
}

function print({ title, figures, goals }) {
  console.log(title)
  const width = Math.max(...figures.map(([what]) => what.length))
  for (const [what, figure] of figures) console.log(`  ${what.padEnd(width)}  ${figure}`)
  for (const goal of goals) {
    console.log(`  ${verdictOf(goal).padEnd(5)} ${goal.what}: ${goal.value} (${goal.wanted})`)
  }
  console.log('')
}
