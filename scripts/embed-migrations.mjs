// Writes migrations/*.sql and sql/**/*.sql into src/postgres/migrations.generated.ts, so that a bundled application
// carries them along. Refuses a file whose header does not answer the questions every reviewer asks.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [
  folder = fileURLToPath(new URL('../migrations', import.meta.url)),
  target = fileURLToPath(new URL('../src/postgres/migrations.generated.ts', import.meta.url)),
  sqlFolder = fileURLToPath(new URL('../sql', import.meta.url)),
] = process.argv.slice(2)

const names = readdirSync(folder)
  .filter((file) => file.endsWith('.sql'))
  .sort()
const settings = { ...readSettings(), breaks_older: String(lastBreaking()) }
const files = readFiles()
const problems = names.flatMap((file, index) => check(file, index + 1))
for (const file of files) problems.push(...checkFile(file))
stopAt(problems)

const migrations = names.map((file) => {
  const sql = readFileSync(join(folder, file), 'utf8')
  const [, number, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file)
  return { version: Number(number), name, sql, checksum: sha256(sql) }
})
const sqlFiles = { version: Number(read(join(sqlFolder, 'version')) ?? 1), files: inOrder(files).map(toSqlFile) }
const source = `// Written by scripts/embed-migrations.mjs from migrations/ and sql/; not to be edited.
import type { Migration } from './migrations.ts'
import type { SqlFiles } from './sql-files.ts'

export const migrations: readonly Migration[] = ${JSON.stringify(migrations, null, 2)}

export const sqlFiles: SqlFiles = ${JSON.stringify(sqlFiles, null, 2)}
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
  if (/^create (or replace )?(function|view|trigger)\b/m.test(sql)) {
    found.push(`${file}: functions, views and triggers belong to sql/, where a change is a changed file`)
  }
  found.push(...checkDrops(file, sql))
  if (/\r/.test(sql)) found.push(`${file}: lines must end in \\n alone, or the checksum depends on the checkout`)
  return found
}

/** Older processes call what they know: it goes when they must stop anyway, and takes nothing of anybody else along. */
function checkDrops(file, sql) {
  const drops = [...sql.matchAll(/^drop (?:function|view|trigger)\b[^;]*/gim)].map(([statement]) => statement)
  const found = []
  if (drops.length > 0 && !/^-- older: refuse\b/m.test(sql)) {
    found.push(`${file}: only a migration with "-- older: refuse" drops a function, view or trigger`)
  }
  for (const drop of drops) {
    if (/\bcascade\b/i.test(drop))
      found.push(`${file}: a function, view or trigger is dropped alone, never with CASCADE`)
    const object = /^drop (?:function|view) (?:if exists )?:schema\.(\w+)/i.exec(drop)?.[1]
    const maker = files.find((one) => one.object !== undefined && one.object === object)
    if (maker) found.push(`${file}: ${object} is dropped, and sql/${maker.path} makes it; remove that file`)
  }
  return found
}

/** The last migration that processes which do not know it must not live with. Its number is written into functions. */
function lastBreaking() {
  const isBreaking = (file) => /^-- older: refuse\b/m.test(readFileSync(join(folder, file), 'utf8'))
  return names.findLastIndex(isBreaking) + 1
}

/** The sets of planner settings of sql/plan_settings.sql, by name. */
function readSettings() {
  const text = read(join(sqlFolder, 'plan_settings.sql')) ?? ''
  return Object.fromEntries(
    text
      .split(/^-- settings: /m)
      .slice(1)
      .map((part) => {
        const [name, ...lines] = part.split('\n')
        return [name.trim(), lines.filter((line) => line !== '' && !line.startsWith('--')).join(' ')]
      }),
  )
}

function readFiles() {
  if (!existsSync(sqlFolder)) return []
  return readdirSync(sqlFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name: stage }) =>
      readdirSync(join(sqlFolder, stage))
        .filter((file) => file.endsWith('.sql'))
        .map((file) => ({ path: `${stage}/${file}`, text: readFileSync(join(sqlFolder, stage, file), 'utf8') })),
    )
    .map(({ path, text }) => {
      const [, name, kind = 'function'] = /^(.+?)(?:\.(procedure|trigger|view|data))?\.sql$/.exec(path)
      const grants = /^-- grants: (emit|run|read|none)$/m.exec(text)?.[1]
      const header = text.split('\n').slice(1)
      const about = header.slice(
        0,
        header.findIndex((line) => !line.startsWith('--')),
      )
      const sql = text.replace(/(?<![:\w]):(\w+)/g, (token, word) => settings[word] ?? token)
      const object = /^create or replace (?:function|procedure|view|trigger) (?::schema\.)?(\w+)/m.exec(text)?.[1]
      const table = /^create or replace trigger [\s\S]*? on :schema\.(\w+)/m.exec(text)?.[1]
      return { name, path, kind, grants, about: about.map((line) => line.replace(/^-- ?/, '')), sql, object, table }
    })
}

function checkFile({ name, path, kind, grants, about, sql, object }) {
  const found = []
  const say = (problem) => found.push(`sql/${path}: ${problem}`)
  if (grants === undefined || !sql.startsWith('-- grants: ')) {
    say('the first line must be "-- grants: emit", "run", "read" or "none", who may use it?')
  }
  if (about.length === 0) say('a comment below the first line is missing, what does it do?')
  if (kind !== 'data' && object === undefined) say(`it holds no "create or replace ${kind}"`)
  if (['function', 'procedure', 'view'].includes(kind) && object !== name.split('/')[1])
    say(`it defines ${object}; name it the same`)
  if ((sql.match(/^create or replace /gm) ?? []).length > 1) say('one object per file')
  if (/\r/.test(sql)) say('lines must end in \\n alone, or the hash depends on the checkout')
  return found
}

/** Functions after the functions they call, then triggers, views, and the data that calls functions. */
function inOrder(all) {
  const functions = new Map(all.filter(({ kind }) => kind === 'function').map((file) => [file.object, file]))
  const ordered = new Set()
  const place = (file, callers) => {
    if (ordered.has(file)) return
    if (callers.includes(file)) {
      stopAt([`sql/${file.path}: calls itself through ${callers.map(({ object }) => object).join(', ')}`])
    }
    for (const [, called] of file.sql.matchAll(/:schema\.(\w+)\s*\(/g)) {
      const other = functions.get(called)
      if (other !== undefined && other !== file) place(other, [...callers, file])
    }
    ordered.add(file)
  }
  for (const kind of ['function', 'procedure', 'trigger', 'view', 'data']) {
    for (const file of all.filter((one) => one.kind === kind)) place(file, [])
  }
  return [...ordered]
}

function toSqlFile({ name, kind, grants, about, sql, object, table }) {
  const comment = kind !== 'data' ? about.join(' ') : undefined
  return { name, kind, object, table, grants, comment, sql, hash: sha256(sql) }
}

function stopAt(found) {
  if (found.length === 0) return
  process.stderr.write(`${found.join('\n')}\n`)
  process.exit(1)
}

function sha256(text) {
  return createHash('sha256').update(text).digest('hex')
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
