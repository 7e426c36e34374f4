/** Reads the command line of `npm run bench`. Pure: the caller prints a mistake and ends the process. */
import { parseArgs } from 'node:util'

export const HELP = `npm run bench -- [case …] [journeys [journey …]] [options]

Plays cases, which measure one part each, and journeys, which begin with an event and end when everything that
follows from it is done, against the best peer. Without a name it plays every case and no journey.

  --server WHERE   "embedded", "system" (a distribution's PostgreSQL, with JIT) or an address. Default: embedded
  --only NAMES     Journeys by name, separated by commas; "webhooks" is every journey that begins with it. The same
                   as naming them after the word "journeys".
  --quick          One round of each journey: shows whether it runs, not how fast.
  --rounds N       Turns of each contender. Default: 5 for cases, 3 for journeys
  --seconds S      How long a timed turn of a case takes. Default: 2
  --record         Keep the figures in bench/results.
  --help           Show this, and the names of all cases and journeys.

The exit code is 1 when a goal is missed. Goals marked "later" belong to work that is planned, and fail nothing.`

const options = {
  help: { type: 'boolean', default: false },
  server: { type: 'string', default: 'embedded' },
  seconds: { type: 'string', default: '2' },
  rounds: { type: 'string' },
  only: { type: 'string' },
  quick: { type: 'boolean', default: false },
  record: { type: 'boolean', default: false },
}

/** A command line that asks for something the bench does not have. Its message is for the terminal. */
export class UsageError extends Error {}

/**
 * `known` has the names of all cases and of all journeys. Without a name every case is played; the journeys take minutes
 * and are played when they are named.
 */
export function parseBenchArguments(argv, known) {
  const { values, positionals } = parse(argv)
  if (values.help) return { help: true }
  const withJourneys = positionals.includes('journeys')
  const named = positionals.filter((name) => name !== 'journeys')
  const isJourney = (name) => withJourneys && !known.cases.includes(name) && known.journeys.some(selects(name))
  const cases = named.filter((name) => !isJourney(name))
  refuseUnknown(cases, known.cases, 'bench')
  if (!withJourneys && (values.only !== undefined || values.quick)) {
    throw new UsageError('--only and --quick belong to the journeys: npm run bench -- journeys --only webhooks --quick')
  }
  return {
    help: false,
    cases: positionals.length > 0 ? cases : known.cases,
    journeys: withJourneys ? selectJourneys([...toNames(values.only), ...named.filter(isJourney)], known.journeys) : [],
    server: parseServer(values.server),
    ms: positive('--seconds', values.seconds) * 1_000,
    rounds: values.rounds === undefined ? undefined : whole('--rounds', values.rounds),
    quick: values.quick,
    record: values.record,
  }
}

/** Every journey when none is asked for. */
function selectJourneys(asked, journeys) {
  if (asked.length === 0) return journeys
  refuseUnknown(
    asked.filter((name) => !journeys.some(selects(name))),
    journeys,
    'journey',
  )
  return journeys.filter((journey) => asked.some((name) => selects(name)(journey)))
}

/** `webhooks` selects `webhooks` and every journey whose name begins with `webhooks-`. */
function selects(name) {
  return (journey) => journey === name || journey.startsWith(`${name}-`)
}

function toNames(list = '') {
  return list.split(',').filter((name) => name !== '')
}

function parse(argv) {
  try {
    return parseArgs({ args: argv, allowPositionals: true, options })
  } catch (error) {
    throw new UsageError(error.message)
  }
}

function refuseUnknown(asked, known, what) {
  const unknown = asked.filter((name) => !known.includes(name))
  if (unknown.length === 0) return
  throw new UsageError(`There is no ${what} called ${unknown.join(', ')}. There are: ${known.join(', ')}.`)
}

function parseServer(text) {
  if (text === 'embedded' || text === 'system') return { kind: text }
  if (/^postgres(ql)?:\/\//.test(text)) return { kind: 'given', url: text }
  throw new UsageError(`--server is "embedded", "system" or an address such as postgres://user@host/database.`)
}

function positive(option, text) {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new UsageError(`${option} must be a number above 0, not "${text}".`)
}

function whole(option, text) {
  const value = Number(text)
  if (value >= 1 && Number.isInteger(value)) return value
  throw new UsageError(`${option} must be a whole number from 1 up, not "${text}".`)
}
