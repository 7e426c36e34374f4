import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { schemaName } from '../../src/postgres/identifiers.ts'
import {
  breaksOlder,
  checksumOf,
  isConcurrent,
  type Migration,
  renderMigration,
} from '../../src/postgres/migrations.ts'
import { compareSchema } from '../../src/postgres/schema-status.ts'
import { concurrentIndexName, splitStatements } from '../../src/postgres/sql-text.ts'

const migration = (version: number, sql: string): Migration => ({ version, name: 'm', sql, checksum: checksumOf(sql) })
const applied = (version: number, sql: string, breaks = false) => ({
  version,
  name: 'm',
  checksum: checksumOf(sql),
  breaksOlder: breaks,
})

describe('rendering', () => {
  const render = (sql: string, name = 'Odd "x') => renderMigration(migration(1, sql), schemaName(name))

  test('puts the quoted schema, its literal and the channel in place', () => {
    expect(render('create table :schema.t()')).toBe('create table "Odd ""x".t()')
    expect(render(`select :schema_literal, :channel_literal`, "o'x")).toBe("select 'o''x', 'o''x_bell'")
    expect(render('listen :channel')).toBe('listen "Odd ""x_bell"')
  })

  test('leaves casts and longer words alone', () => {
    expect(render(`select 1::schema, :schemas, a:schema_literals`)).toBe(
      `select 1::schema, :schemas, a:schema_literals`,
    )
  })
})

describe('headers', () => {
  test('say whether older processes must stop', () => {
    expect(breaksOlder(migration(1, '-- why: x\n-- older: refuse, they would write the old column'))).toBe(true)
    expect(breaksOlder(migration(1, '-- older: keep\nselect $$-- older: refused$$'))).toBe(false)
  })

  test('say whether the file runs outside a transaction', () => {
    expect(isConcurrent(migration(1, '-- concurrent\n-- why: x'))).toBe(true)
    expect(isConcurrent(migration(1, '-- why: not -- concurrent'))).toBe(false)
  })
})

describe('cutting SQL into statements', () => {
  test('ignores semicolons in strings, names, comments and bodies', () => {
    const text = `select ';' , E'\\';' ; -- no; cut
      create function f() returns text language sql as $b$ select ';'; $b$;
      /* nor ; here */ select ";"
    `
    expect(splitStatements(text)).toEqual([
      `select ';' , E'\\';'`,
      `create function f() returns text language sql as $b$ select ';'; $b$`,
      `select ";"`,
    ])
  })

  test('finds the index that is built concurrently', () => {
    expect(concurrentIndexName('create unique index concurrently if not exists Foo on t (a)')).toBe('foo')
    expect(concurrentIndexName('create index concurrently "F""oo" on t (a)')).toBe('F"oo')
    expect(concurrentIndexName('create index foo on t (a)')).toBeUndefined()
  })
})

describe('comparing build and database', () => {
  const known = [migration(1, 'a'), migration(2, 'b')]

  test.each([
    ['empty', []],
    ['behind', [applied(1, 'a')]],
    ['current', [applied(1, 'a'), applied(2, 'b')]],
    ['ahead', [applied(1, 'a'), applied(2, 'b'), applied(3, 'c')]],
    ['too-new', [applied(1, 'a'), applied(2, 'b'), applied(3, 'c', true), applied(4, 'd')]],
    ['changed', [applied(1, 'edited'), applied(2, 'b')]],
  ] as const)('%s', (state, database) => {
    expect(compareSchema(known, database).state).toBe(state)
  })

  test('a migration that breaks older processes does not break those that know it', () => {
    expect(compareSchema(known, [applied(1, 'a', true), applied(2, 'b', true)]).state).toBe('current')
  })
})

describe('embedding', () => {
  const script = fileURLToPath(new URL('../../scripts/embed-migrations.mjs', import.meta.url))

  function embed(files: Record<string, string>, sqlFiles: Record<string, string> = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'ac-embed-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, 'sql/notes'), { recursive: true })
    for (const [name, sql] of Object.entries(files)) writeFileSync(join(folder, name), sql)
    for (const [name, sql] of Object.entries(sqlFiles)) writeFileSync(join(folder, 'sql', name), sql)
    const target = join(folder, 'out.ts')
    const options = { encoding: 'utf8' } as const
    const { status, stderr } = spawnSync(process.execPath, [script, folder, target, join(folder, 'sql')], options)
    return { status, stderr, written: status === 0 ? readFileSync(target, 'utf8') : '' }
  }
  const callable = (name: string, body = 'select 1') =>
    `-- grants: run\n-- Answers.\ncreate or replace function :schema.${name}() returns integer language sql as $$ ${body} $$;`
  const header = '-- why: x\n-- locks: none\n-- older: keep\n'

  test('writes version, name, text and checksum', () => {
    const { written } = embed({ '0001_one.sql': `${header}select 1;` })
    expect(written).toContain('"version": 1')
    expect(written).toContain('"name": "one"')
    expect(written).toContain(checksumOf(`${header}select 1;`))
  })

  test('refuses a header that leaves a question open, and names all of them', () => {
    const { status, stderr } = embed({
      '0001_one.sql': 'select 1;',
      '0002_two.sql': '-- why: x\n-- locks: y\n-- older: maybe',
    })
    expect(status).toBe(1)
    expect(stderr).toContain('0001_one.sql: "-- why:" is missing')
    expect(stderr).toContain('0001_one.sql: "-- locks:" is missing')
    expect(stderr).toContain('0002_two.sql: "-- older: keep"')
  })

  test('refuses a gap in the numbers and a strange name', () => {
    expect(embed({ '0001_one.sql': header, '0003_three.sql': header }).stderr).toContain('the next number is 0002')
    expect(embed({ 'one.sql': header }).stderr).toContain('0001_what_it_does.sql')
  })

  test('puts functions after those they call, and names shared settings once', () => {
    const { written } = embed(
      {},
      {
        'notes/a.sql': callable('a', 'select :schema.b()'),
        'notes/b.sql': callable('b').replace('language sql', 'language sql :careful'),
        'plan_settings.sql': '-- settings: careful\n-- Why.\nset jit = off',
      },
    )
    expect(written.indexOf('"notes/b"')).toBeLessThan(written.indexOf('"notes/a"'))
    expect(written).toContain('language sql set jit = off as')
  })

  test('refuses a file without rights, comment or the name of what it creates, and a function in a migration', () => {
    const { stderr } = embed(
      { '0001_one.sql': `${header}create function :schema.f() returns integer language sql as 'select 1';` },
      {
        'notes/a.sql': callable('a').replace('-- grants: run', '-- grants: all'),
        'notes/b.sql': callable('b').replace('-- Answers.\n', ''),
        'notes/c.sql': callable('d'),
        'notes/e.sql': callable('e') + callable('f'),
      },
    )
    expect(stderr).toContain('0001_one.sql: functions, views and triggers belong to sql/')
    expect(stderr).toContain('sql/notes/a.sql: the first line must be "-- grants: emit"')
    expect(stderr).toContain('sql/notes/b.sql: a comment below the first line is missing')
    expect(stderr).toContain('sql/notes/c.sql: it defines d; name it the same')
  })

  test('refuses functions that call each other in a circle', () => {
    const { stderr } = embed(
      {},
      { 'notes/a.sql': callable('a', 'select :schema.b()'), 'notes/b.sql': callable('b', 'select :schema.a()') },
    )
    expect(stderr).toContain('calls itself through a, b')
  })
})
