import { describe, expect, it, onTestFinished } from 'vitest'
import type { Transaction, TransactionOptions } from '../../../src/postgres/index.ts'
import { connect, openTestDatabase } from '../../support/database.ts'
import { failureOf, prepare, requestFor } from './support.ts'

async function databaseWith(sql: string, name = 'notify') {
  const { db, url } = await openTestDatabase({ migrated: true })
  const client = await connect(url)
  await client.query(`create table seen (event jsonb, setting text)`)
  await client.query(sql)
  const seen = async () => (await client.query(`select event, event::text as text, setting from seen`)).rows
  return { action: prepare('database', { function: name }, { database: db }), seen, client }
}

const keeping = (name: string, returns = 'void') => `
  create function ${name}(event jsonb) returns ${returns} language plpgsql as $$
  begin
    insert into public.seen values (event, current_setting('aftercommit.causation_id', true));
    ${returns === 'void' ? '' : 'return 1;'}
  end $$`

describe('a database action', () => {
  it('calls the function once, with the whole event, digit for digit', async () => {
    const { action, seen } = await databaseWith(keeping('notify'))
    const payload = { total: 9007199254740993n, note: "it's" }
    const result = await action.run(requestFor({ payload, aggregate: { type: 'order', id: '42' } }))
    expect(result).toMatchObject({ actionType: 'database', success: true, message: 'called notify' })
    const rows = await seen()
    expect(rows).toHaveLength(1)
    expect(rows[0].event).toMatchObject({ id: 'evt-1', type: 'order.placed', aggregate_id: '42' })
    expect(rows[0].text).toContain('9007199254740993')
    expect(rows[0].setting).toBe('evt-1')
  })

  it('finds a function in a schema, with capitals or a reserved name, whatever it returns', async () => {
    for (const name of ['billing.Notify', 'billing.select']) {
      const quoted = name.replace(/\.(.*)/, '."$1"')
      const { action, seen } = await databaseWith(`create schema billing; ${keeping(quoted, 'int')}`, name)
      await action.run(requestFor())
      expect(await seen()).toHaveLength(1)
    }
  })

  it('lets what the function emits follow from the event', async () => {
    const { action, client } = await databaseWith(`
      create function notify(event jsonb) returns bigint language sql as
      $$ select aftercommit.emit('invoice.issued', 'invoice', '7', '{}'::jsonb) $$`)
    await action.run(requestFor({ tenant: 'acme', metadata: { correlationId: 'corr-1', userId: 'u-1' } }))
    const { rows } = await client.query(`select tenant, metadata from aftercommit.events`)
    expect(rows).toMatchObject([
      { tenant: 'acme', metadata: { correlation_id: 'corr-1', causation_id: 'evt-1', user_id: 'u-1' } },
    ])
  })

  it.each([
    ['raise exception $x$not yet canary$x$', true, 'P0001'],
    ['perform 1 / 0', false, '22012'],
    [`raise exception 'x' using errcode = '40001'`, true, '40001'],
    [`raise exception 'x' using errcode = '23503'`, true, '23503'],
    [`insert into public.nothere values (1)`, false, '42P01'],
  ])('whose function does %s is worth another attempt: %s', async (body, transient, state) => {
    const { action } = await databaseWith(
      `create function notify(event jsonb) returns void language plpgsql as $$ begin ${body}; end $$`,
    )
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({ code: 'OB011', transient, message: expect.stringContaining(state) })
    expect(error.message).not.toContain('canary')
  })

  it.each([
    ['is missing', 'select 1', 'notify', 'there is no such function'],
    [
      'takes something else',
      'create function notify(a int) returns void language sql as $$$$',
      'notify',
      'no such function',
    ],
    ['is in a schema that is missing', 'select 1', 'billing.notify', 'there is no such schema'],
    ['is a procedure', 'create procedure notify(event jsonb) language sql as $$$$', 'notify', 'it is no function'],
  ])('whose function %s says so before an event comes, and makes one attempt', async (_, sql, name, reason) => {
    const { action } = await databaseWith(sql, name)
    expect(await action.lacks!()).toContain(reason)
    expect(await failureOf(() => action.run(requestFor()))).toMatchObject({ code: 'OB011', transient: false })
  })

  it('whose function is not allowed to its role says so before an event comes', async () => {
    const { db, url } = await openTestDatabase({ migrated: true })
    const owner = await connect(url)
    await owner.query(
      `create schema billing; ${keeping('billing.notify')}; create table seen (event jsonb, setting text)`,
    )
    await owner.query('revoke execute on function billing.notify from public; grant usage on schema billing to public')
    const role = `poor_${process.pid}`
    await owner.query(`create role ${role}`)
    onTestFinished(async () => void (await owner.query(`drop role ${role}`)))
    const as = {
      transaction: (fn: (tx: Transaction) => Promise<unknown>, options?: TransactionOptions) =>
        db.transaction(async (tx) => {
          await tx.query(`set local role ${role}`)
          return fn(tx)
        }, options),
    }
    const action = prepare('database', { function: 'billing.notify' }, { database: as as never })
    expect(await action.lacks!()).toContain('Grant USAGE on the schema and EXECUTE on the function')
    const allowed = prepare('database', { function: 'billing.notify' }, { database: db })
    expect(await allowed.lacks!()).toBeUndefined()
    expect((await owner.query('select from seen')).rowCount).toBe(0)
  })

  it('whose function does not exist says so and is not tried again', async () => {
    const { action } = await databaseWith('select 1')
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({ code: 'OB011', transient: false })
    expect(error.message).toContain('no such function')
  })

  it('undoes everything that its function did before it failed', async () => {
    const { action, seen } = await databaseWith(`
      create function notify(event jsonb) returns void language plpgsql as $$
      begin insert into public.seen values (event); raise exception 'late'; end $$`)
    await failureOf(() => action.run(requestFor()))
    expect(await seen()).toEqual([])
  })

  it('ends with the reason of the caller’s signal', async () => {
    const { action } = await databaseWith(
      `create function notify(event jsonb) returns void language sql as $$ select pg_sleep(60) $$`,
    )
    const stopping = new AbortController()
    const running = action.run(requestFor({ signal: stopping.signal }))
    stopping.abort(new Error('stopping'))
    await expect(running).rejects.toThrow('stopping')
  })
})

describe('the name of a function', () => {
  it.each(['notify()', 'a.b.c', 'a; drop table x', '"a"', 'a b', '', '1a', 'a-b', 'pg_sleep(1)--', 'é'])(
    'is not %j',
    (name) => expect(() => prepare('database', { function: name })).toThrow(/plain name/),
  )
})
