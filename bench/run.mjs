/**
 * `npm run bench [case …] [--seconds 2] [--rounds 5] [--record]`: ratios, measured in one run on one server with one
 * Node. The variants of a case take turns, so that a slow moment of the machine meets them all; each figure is the
 * median of its rounds. Absolute figures vary by a factor of two between machines and days: only ratios count.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../scripts/steps.mjs'
import { startBenchServer } from './server.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    record: { type: 'boolean', default: false },
  },
})
const built = spawnSync(process.execPath, [join(root, 'scripts/build.mjs'), '--quiet'], { stdio: 'inherit' })
if (built.status !== 0) process.exit(1)

const names = [
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
const chosen = positionals.length > 0 ? positionals : names
const unknown = chosen.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`There is no bench called ${unknown.join(', ')}. There are: ${names.join(', ')}.`)
  process.exit(2)
}

const server = await startBenchServer()
const settings = { url: server.url, ms: Number(values.seconds) * 1_000, rounds: Number(values.rounds) }
const results = []
try {
  console.log(`PostgreSQL ${server.version}, Node ${process.version}, ${cpus().length} cores, fsync on\n`)
  for (const name of chosen) {
    const { run } = await import(`./cases/${name}.mjs`)
    const result = { name, ...(await run(settings)) }
    results.push(result)
    print(result)
  }
} finally {
  await server.stop()
}
if (values.record) record()
process.exit(results.some(({ goals }) => goals.some((goal) => !goal.met)) ? 1 : 0)

function print({ title, figures, goals }) {
  console.log(title)
  const width = Math.max(...figures.map(([what]) => what.length))
  for (const [what, figure] of figures) console.log(`  ${what.padEnd(width)}  ${figure}`)
  for (const { what, value, wanted, met } of goals)
    console.log(`  ${met ? 'ok  ' : 'MISS'} ${what}: ${value} (${wanted})`)
  console.log('')
}

function record() {
  const when = new Date().toISOString()
  const folder = join(root, 'bench/results')
  mkdirSync(folder, { recursive: true })
  const about = {
    when,
    postgres: server.version,
    node: process.version,
    cores: cpus().length,
    ...settings,
    url: undefined,
  }
  const file = join(folder, `${when.slice(0, 10)}-${chosen.join('-')}.json`)
  writeFileSync(file, `${JSON.stringify({ about, results }, null, 2)}\n`)
  console.log(`recorded in ${file.slice(root.length)}`)
}
