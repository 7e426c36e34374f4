// Writes migrations/*.sql into src/postgres/migrations.generated.ts, so that a bundled application carries them along.
// Refuses a file whose header does not answer the three questions every reviewer asks.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [
  folder = fileURLToPath(new URL('../migrations', import.meta.url)),
  target = fileURLToPath(new URL('../src/postgres/migrations.generated.ts', import.meta.url)),
] = process.argv.slice(2)

const files = readdirSync(folder)
  .filter((file) => file.endsWith('.sql'))
  .sort()
const problems = files.flatMap((file, index) => check(file, index + 1))
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}

const migrations = files.map((file) => {
  const sql = readFileSync(join(folder, file), 'utf8')
  const [, number, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file)
  return { version: Number(number), name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
})
const source = `// Written by scripts/embed-migrations.mjs from migrations/; not to be edited.
import type { Migration } from './migrations.ts'

export const migrations: readonly Migration[] = ${JSON.stringify(migrations, null, 2)}
`
if (read(target) !== source) writeFileSync(target, source)

function check(file, expected) {
  const parts = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)
  if (!parts) return [`${file}: the name must look like 0001_what_it_does.sql`]
  const sql = readFileSync(join(folder, file), 'utf8')
  const found = []
  if (Number(parts[1]) !== expected) found.push(`${file}: the next number is ${String(expected).padStart(4, '0')}`)
  if (!/^-- why: \S/m.test(sql)) found.push(`${file}: "-- why:" is missing, what is this migration for?`)
  if (!/^-- locks: \S/m.test(sql)) found.push(`${file}: "-- locks:" is missing, which locks, for how long?`)
  if (!/^-- older: (keep|refuse)\b/m.test(sql)) {
    found.push(`${file}: "-- older: keep" or "-- older: refuse" is missing, can older processes go on?`)
  }
  if (/\r/.test(sql)) found.push(`${file}: lines must end in \\n alone, or the checksum depends on the checkout`)
  return found
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
