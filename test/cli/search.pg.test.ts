import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { emptyFolder, runCli, startCli } from './support.ts'

beforeAll(buildPackage)

const RULES = `
[providers.search]
kind = "postgres"

[observers.products]
on = "product.*"
condition = "event.kind == 'deleted' || price > 0"
actions = [{ type = "search", index = "products", document = { name = "{{ name }}", note = "costs {{ price }}" } }]
`

async function openShop(rules = RULES) {
  const { url } = await testDatabase({ migrated: true })
  const ac = instance({ database: url })
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'aftercommit.toml'), rules)
  const cli = (...args: string[]) => runCli(args, { cwd, env: { DATABASE_URL: url } })
  const emit = (id: string, payload: object, type = 'product.updated') =>
    ac.transaction((tx) => tx.emit(type, { aggregate: { type: 'product', id }, payload }))
  return { ac, url, cwd, cli, emit }
}

describe('search', () => {
  it('reindex makes an index of history, list and query show it', async () => {
    const { cli, emit } = await openShop()
    await emit('1', { name: 'Desk lamp', price: 5 })
    await emit('2', { name: 'Free lamp', price: 0 })
    await emit('3', { name: 'Gone lamp', price: 7 })
    await emit('3', {}, 'product.deleted')
    const made = await cli('search', 'reindex')
    expect(made).toMatchObject({ code: 0 })
    expect(made.stdout).toMatch(/products\s+replaced\s+2\s+1\s+0/)
    expect(made.stderr).toContain('Walked 4 events.')
    const listed = await cli('search', 'list')
    expect(listed.stdout).toMatch(/products\s+simple\s+1\s+4\s+\S+\s+ready/)
    expect(JSON.parse((await cli('search', 'list', '--json')).stdout)).toMatchObject([
      { name: 'products', documents: 1, position: '4', is_building: false },
    ])
    const found = await cli('search', 'query', 'products', 'desk', 'la')
    expect(found.code).toBe(0)
    expect(found.stdout).toMatch(/1\s+0\.\d+\s+Desk lamp costs/)
    const json = await cli('search', 'query', 'products', 'lamp', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({
      hits: [
        { id: '1', document: { name: 'Desk lamp', note: 'costs 5' }, highlight: expect.stringContaining('<mark>') },
      ],
    })
    expect(await cli('search', 'query', 'products', 'sofa')).toMatchObject({ code: 1, stdout: '' })
  })

  it('reindex --json tells what could not be made, and exits with 5', async () => {
    const { cli, emit } = await openShop(RULES.replace('index = "products"', 'index = "products", id = "{{ name }}"'))
    await emit('1', { name: 'Desk lamp', price: 5 })
    await emit('2', { price: 5 })
    const { code, stdout } = await cli('search', 'reindex', 'products', '--json')
    expect(code).toBe(5)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      failures: 1,
      indexes: [{ index: 'products', upserts: 1 }],
      problems: [{ observer: 'products', code: 'OB003', position: '2' }],
    })
  })

  it('refuses an index that no rule writes to, a language that is not there, and a folder without a file', async () => {
    const { cli, url, emit } = await openShop()
    await emit('1', { name: 'Desk lamp', price: 5 })
    const unknown = await cli('search', 'reindex', 'product')
    expect(unknown.code).not.toBe(0)
    expect(unknown.stderr).toContain('Did you mean "products"?')
    const other = await openShop(RULES.replace('kind = "postgres"', 'kind = "postgres"\nlanguage = "klingon"'))
    expect((await other.cli('search', 'reindex')).stderr).toContain('klingon')
    expect((await runCli(['search', 'reindex'], { env: { DATABASE_URL: url } })).code).toBe(3)
    await cli('search', 'reindex')
    expect((await cli('search', 'query', 'products', 'x', '--language', 'klingon')).stderr).toContain('klingon')
  })

  it('reindex that is killed in the middle leaves what was in use, and can be run again', async () => {
    const { ac, cli, cwd, url, emit } = await openShop()
    await emit('1', { name: 'Desk lamp', price: 5 })
    await cli('search', 'reindex')
    const sql = await connect(url)
    await sql.query(
      `select aftercommit.emit('product.updated', 'product', n::text, '{"name":"Floor lamp","price":9}')
         from generate_series(1, 2000) n`,
    )
    // It stops at the last document of the walk, for as long as this transaction is open.
    await sql.query(`create table public.brake (); create function public.wait() returns trigger language plpgsql as $$
      begin
        if new.generation > 2 and new.id = '1999' then perform from public.brake; end if;
        return new;
      end $$;
      create trigger wait before insert on aftercommit.search_documents for each row execute function public.wait()`)
    await sql.query('begin; lock table public.brake')
    const walking = startCli(['search', 'reindex'], { cwd, env: { DATABASE_URL: url } })
    const other = await connect(url)
    const waiting = `select pid from pg_locks where relation = 'public.brake'::regclass and not granted`
    const { pid } = await eventually(async () => (await other.query(waiting)).rows[0])
    walking.kill('SIGKILL')
    await walking.exited
    expect(await ac.search.indexes()).toMatchObject([{ documents: 1, isBuilding: true }])
    expect((await ac.search.query('products', 'desk')).hits).toHaveLength(1)
    await sql.query('rollback')
    // What the server was doing for the one that was killed ends by itself.
    await eventually(
      async () => (await other.query('select from pg_stat_activity where pid = $1', [pid])).rowCount === 0,
    )
    expect(await cli('search', 'reindex')).toMatchObject({ code: 0 })
    expect(await ac.search.indexes()).toMatchObject([{ documents: 2_000, isBuilding: false }])
    expect((await other.query('select distinct generation from aftercommit.search_documents')).rowCount).toBe(1)
  })
})
