/**
 * Ratios, measured in one run on one server with one Node. The variants of a case, and the contenders of a journey, take
 * turns, so that a slow moment of the machine meets them all; each figure is the median of its rounds. Absolute figures
 * vary by a factor of two between machines and days: only ratios count. The exit code is 1 when a goal is missed.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../scripts/steps.mjs'
import { HELP, parseBenchArguments, UsageError } from './arguments.mjs'
import { createScope } from './contenders/scope.mjs'
import { anyMissed, didNotEnd, verdictOf } from './goals.mjs'
import { describeRun, recordRun } from './record.mjs'

const cases = [
  'append',
  'batch',
  'capture',
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

/** From an event to the end of what follows from it, against the best peer. */
const journeys = [
  'webhooks-backlog',
  'webhooks-burst',
  'webhooks-fanout',
  'webhooks-steady',
  'webhooks-limited',
  'webhooks-retry',
  'webhooks-kill',
  'two-step-workflow',
  'catchup-typed',
  'observers',
  'processes',
  'pooled',
  'distance',
]

process.exit(await main())

async function main() {
  try {
    const asked = parseBenchArguments(process.argv.slice(2), { cases, journeys })
    if (!asked.help) return await play(asked)
    console.log(`${HELP}\n\nCases: ${cases.join(', ')}\nJourneys: ${journeys.join(', ')}`)
    return 0
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
    for (const name of asked.journeys) {
      const result = { name: `journeys/${name}`, ...(await playJourney(name, server, asked)) }
      results.push(result)
      print(result)
    }
  } finally {
    await server.stop()
  }
  if (asked.record) console.log(`recorded in ${recordRun(about, results)}`)
  return anyMissed(results) ? 1 : 0
}

/** One that fails is a miss, and the others are played all the same. */
async function playJourney(name, server, { rounds, quick }) {
  const { own, close } = createScope()
  const { run } = await import(`./journeys/${name}.mjs`)
  try {
    return await run({ server, own, quick, rounds: rounds ?? (quick ? 1 : 3) })
  } catch (error) {
    return { title: `${name} did not end`, figures: [], goals: [didNotEnd(error)] }
  } finally {
    await close()
  }
}

function printConditions({ server: { kind, version, jit, fsync }, node, cpu, commit }) {
  console.log(`PostgreSQL ${version}, server ${kind}, jit ${jit}, fsync ${fsync}`)
  console.log(`Node ${node}, ${cpu}${commit === null ? '' : `, commit ${commit}`}\n`)
}

function print({ title, figures, goals }) {
  console.log(title)
  const width = Math.max(0, ...figures.map(([what]) => what.length))
  for (const [what, figure] of figures) console.log(`  ${what.padEnd(width)}  ${figure}`)
  for (const goal of goals) {
    console.log(`  ${verdictOf(goal).padEnd(5)} ${goal.what}: ${goal.value} (${goal.wanted})`)
  }
  console.log('')
}
