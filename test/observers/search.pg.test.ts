import { describe, expect, it } from 'vitest'
import { createAftercommit } from '../../src/aftercommit.ts'
import type { Aftercommit } from '../../src/instance.ts'
import { instance } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { POSTGRES, PRODUCTS, refusePositions, rulesFile } from './support/search-rules.ts'

async function startWith(ac: Aftercommit, file = rulesFile(POSTGRES, PRODUCTS)): Promise<Aftercommit> {
  await ac.observers.loadFile(file)
  await ac.start()
  return ac
}

/** The position that comes next, so that a test can lie in wait for it. */
async function emitProduct(ac: Aftercommit, id: string, name: string | null): Promise<bigint> {
  const type = name === null ? 'product.deleted' : 'product.updated'
  const { position } = await ac.transaction((tx) =>
    tx.emit(type, { aggregate: { type: 'product', id }, payload: name === null ? {} : { name } }),
  )
  return position
}

const nameOf = async (ac: Aftercommit, id: string) => (await ac.search.get('products', id))?.document.name

describe('events and their documents', () => {
  it('what is emitted is found, what is deleted is not', async () => {
    const { ac } = await openSubscriptions()
    await startWith(ac)
    await emitProduct(ac, '1', 'Desk lamp')
    await emitProduct(ac, '2', 'Floor lamp')
    const found = async () => (await ac.search.query('products', 'lam')).hits.map(({ id }) => id).sort()
    await eventually(async () => (await found()).length === 2)
    await emitProduct(ac, '1', null)
    await eventually(async () => (await found()).join() === '2')
  })

  it.each([
    ['a newer state', 'second'],
    ['a deletion', null],
  ])('a retry that comes late does not win over %s, with two processes at work', async (_, second) => {
    const { ac, another, sql } = await openSubscriptions()
    const { refuse, allow } = await refusePositions(sql)
    const file = rulesFile(POSTGRES, PRODUCTS)
    await startWith(ac, file)
    await startWith(another(), file)
    await emitProduct(ac, '1', 'zeroth')
    await eventually(async () => (await nameOf(ac, '1')) === 'zeroth')
    // The log is quiet, so the next position is known.
    const { head } = await ac.log.status()
    await refuse(head + 1n)
    const first = await emitProduct(ac, '1', 'first')
    expect(first).toBe(head + 1n)
    await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 1)
    await emitProduct(ac, '1', second)
    await eventually(async () => ((await nameOf(ac, '1')) ?? null) === second)
    await allow()
    const late = await eventually(async () => {
      const { rows } = await sql.query(
        `select actions->0->>'message' as message from aftercommit.runs where position = $1 and status = 'success'`,
        [first],
      )
      return rows[0]?.message as string | undefined
    })
    expect(late).toContain('superseded')
    expect((await nameOf(ac, '1')) ?? null).toBe(second)
    expect(await ac.deadLetters.count()).toBe(0)
  })

  // Three restarts, each of which may take as long as most tests.
  it('a database that is restarted in the middle loses nothing and goes back to nothing older', {
    timeout: 180_000,
  }, async () => {
    const server = await ownServer()
    const ac = createAftercommit({ database: server.url })
    try {
      await ac.migrate()
      await startWith(ac)
      let last = 0
      const emitNext = async () => {
        await emitProduct(ac, `${last % 7}`, `state ${last + 1}`)
        last++
      }
      for (let round = 0; round < 3; round++) {
        for (let n = 0; n < 50; n++) await emitNext()
        await server.stop()
        await server.start()
        await eventually(() => emitNext().then(() => true), { deadline: 60_000 })
      }
      const sql = await connect(server.url)
      const { rows } = await sql.query(
        `select distinct on (aggregate_id) aggregate_id as id, payload->>'name' as name
           from aftercommit.events order by aggregate_id, position desc`,
      )
      for (const { id, name } of rows) {
        await eventually(async () => (await nameOf(ac, id)) === name, { deadline: 60_000 })
      }
    } finally {
      await ac.stop()
    }
  })
})

describe('the file', () => {
  it('with a language that this server does not have is refused before anything is in force', async () => {
    const { ac } = await openSubscriptions()
    await ac.observers.loadFile(rulesFile(POSTGRES, 'language = "klingon"', PRODUCTS))
    await expect(ac.start()).rejects.toMatchObject({ code: 'OB012', message: expect.stringContaining('klingon') })
  })

  it('that changes to such a language leaves the one in force', async () => {
    const { ac } = await openSubscriptions()
    await startWith(ac)
    const wrong = rulesFile(POSTGRES, 'language = "klingon"', PRODUCTS)
    await expect(ac.observers.loadFile(wrong)).rejects.toMatchObject({ code: 'OB012' })
    await emitProduct(ac, '1', 'Desk lamp')
    await eventually(async () => (await nameOf(ac, '1')) === 'Desk lamp')
  })

  it('names an engine that doctor asks for', async () => {
    const { ac, another } = await openSubscriptions()
    await startWith(ac)
    const of = async (one: Aftercommit) => (await one.doctor()).filter(({ check }) => check === 'search')
    expect(await of(ac)).toMatchObject([{ level: 'ok' }])
    const away = another()
    await away.observers.loadFile(
      rulesFile('[providers.search]\nkind = "elasticsearch"\nurl = "http://127.0.0.1:1"\napi_key = "canary"', PRODUCTS),
    )
    const [finding] = await of(away)
    expect(finding).toMatchObject({ level: 'warning', message: expect.stringContaining('127.0.0.1:1') })
    expect(JSON.stringify(finding)).not.toContain('canary')
  })
})

it('a role that may only run can index, search and keep up', async () => {
  const { ac, sql, url } = await openSubscriptions()
  const role = `ac_search_${Date.now()}_${process.pid}`
  await sql.query(`create role ${role} login`)
  try {
    await ac.migrate({ grantRun: [role] })
    const runner = instance({ database: url.replace('postgres@', `${role}@`) })
    await startWith(runner)
    await emitProduct(runner, '1', 'Desk lamp')
    await eventually(async () => (await runner.search.query('products', 'desk')).hits.length === 1)
    expect(await runner.search.reindex()).toMatchObject({ ok: true, indexes: [{ upserts: 1, outcome: 'replaced' }] })
    await runner.upkeep()
    expect((await runner.search.indexes()).map(({ documents }) => documents)).toEqual([1])
    expect(await runner.search.removeIndex('products')).toBe(true)
    await runner.stop()
  } finally {
    await ac.stop()
    await sql.query(`drop owned by ${role}; drop role ${role}`)
  }
})
