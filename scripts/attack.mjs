/**
 * `npm run attack [-- --only <name> --quick --json --folder <path>]`: plays known attacks against `aftercommit start`
 * and against mounted HTTP handlers, each on a database of its own, and prints a verdict for each.
 *
 * An attack is a file `scripts/attacks/<name>.mjs` that exports `title`, one sentence of what must hold, and
 * `run(context)`, which throws when it does not; `attack-context.mjs` says what the context offers. `--quick` asks
 * attacks for their small form. An attack that fails to run or does not end in time counts as broken; one whose program
 * this machine lacks is told as not played.
 *
 * Exit codes: 0 every attack was held off, 1 an attack broke through, 2 a name that does not exist.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { root, seconds } from './steps.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    folder: { type: 'string', default: join(root, 'scripts/attacks') },
  },
})
const limitMs = 120_000
const { quick, json, folder } = values
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs'))
  .map((file) => file.slice(0, -'.mjs'.length))
  .sort()
const unknown = (values.only ?? []).filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`There is no attack called ${unknown.join(', ')}. There are: ${names.join(', ')}.`)
  process.exit(2)
}
const built = spawnSync(process.execPath, [join(root, 'scripts/build.mjs'), '--quiet'], {
  stdio: ['ignore', 'ignore', 'inherit'],
})
if (built.status !== 0) process.exit(1)

// Loaded after the build, because it imports the built package.
const { openArena } = await import('./attack-context.mjs')
const arena = await openArena()
const results = []
try {
  for (const name of names.filter((one) => values.only?.includes(one) ?? true)) {
    const result = await play(name)
    results.push(result)
    if (!json) print(result)
  }
} finally {
  await arena.close()
}
const broken = results.filter(({ verdict }) => verdict === 'broken').length
if (json) console.log(JSON.stringify({ attacks: results, broken }))
else console.log(`${results.length} attacks, ${broken} BROKEN`)
process.exit(broken > 0 ? 1 : 0)

async function play(name) {
  const { title, run } = await import(pathToFileURL(resolve(folder, `${name}.mjs`)))
  const started = performance.now()
  const { context, close } = await arena.open({ quick, limitMs })
  const late = new Promise((_, reject) => {
    context.signal.addEventListener('abort', () => reject(new Error(`it did not end within ${limitMs / 1000} s`)))
  })
  const outcome = await Promise.race([(async () => run(context))(), late]).then(
    () => ({ verdict: 'held' }),
    (error) => {
      if (error.name === 'NotPlayed') return { verdict: 'not played', what: error.message }
      return { verdict: 'broken', what: error.name === 'Broken' ? error.message : explain(error) }
    },
  )
  const closing = await close().catch((error) => ({ verdict: 'broken', what: `it left something behind: ${error}` }))
  return { name, title, ...outcome, ...closing, took: seconds(started) }
}

function explain(error) {
  return `it could not be played: ${error.stack ?? error}`
}

function print({ name, title, verdict, what, took }) {
  const word = { held: 'held', broken: `BROKEN: ${what}`, 'not played': `not played: ${what}` }[verdict]
  console.log(`${name} (${took})\n  ${title}\n  ${word}\n`)
}
