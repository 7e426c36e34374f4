/**
 * `npm run schema`: writes the dump of the schema of this version, test/schemas/<version>.sql. The dump is the SQL that
 * makes the schema in an empty database. It holds no times and nothing of a server, so it changes only with the schema.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './steps.mjs'

const built = await run(process.execPath, ['scripts/build.mjs', '--quiet'])
if (built !== 0) process.exit(built)
const { loadMigrations, loadSqlFiles, schemaName, wholeScript } = await import('../dist/postgres/index.js')
const { version: release } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const definition = { migrations: await loadMigrations(), sql: await loadSqlFiles() }

const path = `test/schemas/${String(definition.sql.version).padStart(4, '0')}.sql`
const heading = `-- The schema of aftercommit ${release}, written by npm run schema.\n`
const before = read(join(root, path))
if (before !== undefined && before.split('\n')[0] !== heading.trimEnd()) {
  process.stderr.write(`${path} is the schema of another release, so it was not written. Raise sql/version first.\n`)
  process.exit(1)
}
mkdirSync(join(root, 'test/schemas'), { recursive: true })
writeFileSync(join(root, path), heading + wholeScript(definition, schemaName('aftercommit')))
console.log(`schema: ${path} written`)

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
