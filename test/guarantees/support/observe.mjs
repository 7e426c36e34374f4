// A program that runs the rules of a file and tells everything it can: every log line with all there is in its fields,
// on `report` its metrics, health and states, and what it gets for every other file that it is told to load.
// Usage: node observe.mjs <file>; the database is DATABASE_URL.
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'
import { createAftercommit } from 'aftercommit'

const [file] = process.argv.slice(2)
const show = (value) => inspect(value, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null })

process.on('unhandledRejection', (error) => console.log(`UNHANDLED ${show(error)}`))

const say = (level) => (fields, message) => console.log(`${level} ${message} ${show(fields)}`)
const logger = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error'), child: () => logger }

const ac = createAftercommit({ logger })
await ac.observers.loadFile(file)
await ac.start()
console.log('started')

createInterface({ input: process.stdin }).on('line', async (line) => {
  if (line !== 'report') return load(line)
  console.log(await ac.metrics())
  console.log(show([await ac.health(), await ac.status()]))
  console.log(show([ac.observers.list(), await ac.observers.status()]))
  console.log(show([await ac.deliveries.list(), await ac.deliveries.destinations(), await ac.deadLetters.list()]))
  console.log('reported')
})

/** A file with mistakes throws them, and they are the program's to show. */
async function load(file) {
  const name = basename(file, '.toml')
  await ac.observers.loadFile(file).then(
    (diff) => console.log(`loaded ${name} ${show(diff)}`),
    (error) => console.log(`refused ${name} ${show(error)} ${JSON.stringify(error)} ${error}`),
  )
}
