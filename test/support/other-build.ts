/** The SQL of another build: that of this one with some files changed, embedded as every build does it. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { Migration, SqlFiles } from '../../src/postgres/index.ts'

const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url))

export interface OtherBuild {
  readonly migrations: readonly Migration[]
  readonly sql: SqlFiles
}

export interface OtherBuildChanges {
  readonly version: number
  /** Files by path, as `sql/log/new_id.sql`: their new content, made from the old one. Null removes a file. */
  readonly files?: Record<string, ((before: string) => string) | null>
  /** The statements of further migrations, in order. */
  readonly migrations?: readonly { readonly name: string; readonly older: 'keep' | 'refuse'; readonly sql: string }[]
}

export function otherBuild({ version, files = {}, migrations = [] }: OtherBuildChanges): OtherBuild {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-build-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(path('migrations'), join(folder, 'migrations'), { recursive: true })
  cpSync(path('sql'), join(folder, 'sql'), { recursive: true })
  writeFileSync(join(folder, 'sql/version'), `${version}\n`)
  for (const [name, change] of Object.entries(files)) {
    const file = join(folder, name)
    if (change === null) rmSync(file)
    else writeFileSync(file, change(read(file)))
  }
  const known = readdirSync(join(folder, 'migrations')).length
  migrations.forEach(({ name, older, sql }, index) => {
    const number = String(known + index + 1).padStart(4, '0')
    writeFileSync(
      join(folder, `migrations/${number}_${name}.sql`),
      `-- why: played by a test\n-- locks: none\n-- older: ${older}\n${sql}\n`,
    )
  })
  const target = join(folder, 'generated.ts')
  const script = path('scripts/embed-migrations.mjs')
  execFileSync(process.execPath, [script, join(folder, 'migrations'), target, join(folder, 'sql')], { stdio: 'pipe' })
  return parse(read(target))
}

function parse(source: string): OtherBuild {
  const [, migrations, sql] =
    /readonly Migration\[\] = ([\s\S]*)\n\nexport const sqlFiles: SqlFiles = ([\s\S]*)$/.exec(source) ?? []
  return { migrations: JSON.parse(migrations!), sql: JSON.parse(sql!) }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
