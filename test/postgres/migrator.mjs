// A migrator to be killed: applies the definition given as JSON to the database given as URL, and tells what it does.
import { createDatabase, migrate } from '../../dist/postgres/index.js'

const [url, definition] = process.argv.slice(2)
const db = createDatabase({ database: url })
console.log('started')
await migrate(db, {
  ...JSON.parse(definition),
  onStep: (step) => console.log(`${step.kind} ${step.migration ?? ''}`),
})
await db.close()
console.log('finished')
