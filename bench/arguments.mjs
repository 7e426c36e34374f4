/** Reads the command line of `npm run bench`. Pure: the caller prints a mistake and ends the process. */
import { parseArgs } from 'node:util'

const options = {
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
  const withJourneys = positionals.includes('journeys')
  const named = positionals.filter((name) => name !== 'journeys')
  refuseUnknown(named, known.cases, 'bench')
  if (!withJourneys && (values.only !== undefined || values.quick)) {
    throw new UsageError('--only and --quick belong to the journeys: npm run bench -- journeys --only webhooks --quick')
  }
  return {
    cases: positionals.length > 0 ? named : known.cases,
    journeys: withJourneys ? selectJourneys(values.only, known.journeys) : [],
    server: parseServer(values.server),
    ms: positive('--seconds', values.seconds) * 1_000,
    rounds: values.rounds === undefined ? undefined : whole('--rounds', values.rounds),
    quick: values.quick,
    record: values.record,
  }
}

/** `webhooks` selects `webhooks` and every journey whose name begins with `webhooks-`. */
export function selectJourneys(only, journeys) {
  if (only === undefined) return journeys
  const asked = only.split(',').filter((name) => name !== '')
  const selects = (name) => (journey) => journey === name || journey.startsWith(`${name}-`)
  refuseUnknown(
    asked.filter((name) => !journeys.some(selects(name))),
    journeys,
    'journey',
  )
  return journeys.filter((journey) => asked.some((name) => selects(name)(journey)))
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
