/**
 * Plays many runs and judges them. `scripts/simulate.mjs` compiles this file and calls `main`.
 *
 * Exit codes: 0 every run kept its promises, 1 a run did not, 2 an argument is wrong.
 */
import { parseArgs } from 'node:util'
import { isSafety, SAFETIES, type Safety } from './database/safeties.ts'
import { play, type Run } from './simulation.ts'

const HELP = `npm run simulate -- [--seed <n>] [--runs <n>] [--without <safety>] [--story] [--json]

Plays subscriptions and the work of observers against a simulated database in random orders of faults, and checks what came
of it. The same seed plays the same run.

  --seed <n>            The seed of the first run; each run after it has the next one. Default: a random number.
  --runs <n>            How many runs; the first that breaks a promise ends them. Default: 2000.
  --without <safety>    Switches a safety off, to see that its fault is found: ${SAFETIES.join(', ')}.
  --story               Prints what happens in each run. The end of a run that breaks a promise is printed in any case.
  --json                Prints the verdict as JSON.
  --help                Prints this.
`

/** Lines of a story that are printed of a run that broke a promise. */
const LAST_LINES = 60

export interface Verdict {
  readonly seed: number
  readonly runs: number
  readonly steps: number
  readonly seconds: number
  readonly stepsPerMinute: number
  readonly violation: { readonly seed: number; readonly what: string; readonly again: string } | undefined
}

export async function main(args: readonly string[]): Promise<number> {
  const asked = readArguments(args)
  if (typeof asked === 'string') {
    console.error(asked)
    return 2
  }
  if (asked.help) {
    console.log(HELP)
    return 0
  }
  const { seed, runs, without, json, story } = asked
  const started = performance.now()
  let told = started
  let steps = 0
  let played = 0
  let broken: Run | undefined
  while (played < runs && !broken) {
    const run = await play(seed + played, { without, ...(story ? { tell: console.log } : {}) })
    played++
    steps += run.steps
    if (run.violation !== undefined) broken = run
    if (json || performance.now() - told < 2_000) continue
    told = performance.now()
    console.error(`${played} of ${runs} runs from seed ${seed}, ${steps} steps`)
  }
  const seconds = (performance.now() - started) / 1_000
  const verdict: Verdict = {
    seed,
    runs: played,
    steps,
    seconds: Number(seconds.toFixed(1)),
    stepsPerMinute: Math.round((steps / seconds) * 60),
    violation: broken && { seed: broken.seed, what: broken.violation!, again: commandOf(broken.seed, without) },
  }
  if (json) console.log(JSON.stringify(verdict))
  else await print(verdict, without)
  return broken ? 1 : 0
}

async function print({ seed, runs, steps, seconds, stepsPerMinute, violation }: Verdict, without: readonly Safety[]) {
  const size = `${runs} runs from seed ${seed}, ${steps} steps in ${seconds} s (${(stepsPerMinute / 1e6).toFixed(1)} million a minute)`
  if (!violation) {
    console.log(`KEPT: ${size}`)
    return
  }
  const lines: string[] = []
  await play(violation.seed, { without, tell: (line) => lines.push(line) })
  console.log(lines.slice(-LAST_LINES).join('\n'))
  console.log(`\nBROKEN with seed ${violation.seed}: ${violation.what}\n${size}\nAgain: ${violation.again}`)
}

function commandOf(seed: number, without: readonly Safety[]): string {
  const off = without.map((safety) => ` --without '${safety}'`).join('')
  return `npm run simulate -- --seed ${seed} --runs 1${off}`
}

interface Asked {
  readonly seed: number
  readonly runs: number
  readonly without: readonly Safety[]
  readonly story: boolean
  readonly json: boolean
  readonly help: boolean
}

function readArguments(args: readonly string[]): Asked | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
        runs: { type: 'string', default: '2000' },
        without: { type: 'string', multiple: true, default: [] },
        story: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    const { without, story, json, help } = values
    const unknown = without.find((name) => !isSafety(name))
    if (unknown !== undefined) return `There is no safety "${unknown}". There are: ${SAFETIES.join(', ')}.`
    const seed = toWhole('--seed', values.seed, 0)
    const runs = toWhole('--runs', values.runs, 1)
    return { seed, runs, without: without as Safety[], story, json, help }
  } catch (error) {
    return `${(error as Error).message}\n\n${HELP}`
  }
}

function toWhole(option: string, text: string, least: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value
  throw new Error(`${option} needs a whole number of at least ${least}, not "${text}".`)
}
