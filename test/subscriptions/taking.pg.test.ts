/** Things that change while a process is about to take a subscription: it begins nothing that was not asked for any more. */
import type pg from 'pg'
import { expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { openSubscriptions, recorder } from './support/open-subscriptions.ts'

const LOCK = 4_711

/** Whoever takes a lease stands still before its end until the gate is opened. */
async function closeGate(sql: pg.Client) {
  await sql.query(`
    create function wait_at_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${LOCK}); return new; end $$;
    create trigger wait_at_gate before update on aftercommit.subscription_partitions for each row
      when (new.owner is not null and old.owner is distinct from new.owner) execute function wait_at_gate()`)
  await sql.query(`select pg_advisory_lock(${LOCK})`)
  return {
    reached: () =>
      eventually(async () => {
        const { rowCount } = await sql.query(
          `select from pg_locks where locktype = 'advisory' and objid = ${LOCK} and not granted
              and database = (select oid from pg_database where datname = current_database())`,
        )
        return rowCount === 1
      }),
    open: () => sql.query(`select pg_advisory_unlock(${LOCK})`),
  }
}

/** A subscription whose lease is being taken, with an event to handle. */
async function openTaking() {
  const opened = await openSubscriptions()
  const { ac, emit, sql } = opened
  const seen = recorder()
  const handle = ac.subscribe({ id: 'sub', from: 'start', handle: seen.handle })
  await emit('first')
  const gate = await closeGate(sql)
  await ac.start()
  await gate.reached()
  return { ...opened, seen, handle, gate }
}

const ownerOf = async (sql: pg.Client) =>
  (await sql.query('select owner, term from aftercommit.subscription_partitions')).rows[0]

it('what was paused meanwhile is given back before anything is handled', async () => {
  const { sql, seen, handle, gate } = await openTaking()
  // It finds no owner, so it is true from here on.
  await handle.pause()
  await gate.open()
  await eventually(async () => {
    const { owner, term } = await ownerOf(sql)
    return owner === null && Number(term) > 0
  })
  expect(seen.ids).toEqual([])
  await handle.resume()
  await seen.sees('first')
})

it('what was taken out of the process meanwhile is free for others', async () => {
  const { sql, another, seen, handle, gate } = await openTaking()
  const other = recorder()
  await handle.stop()
  await gate.open()
  await eventually(async () => (await ownerOf(sql)).owner === null)
  const next = another()
  next.subscribe({ id: 'sub', from: 'start', handle: other.handle })
  await next.start()
  await other.sees('first')
  expect(seen.ids).toEqual([])
})

it('what was registered anew meanwhile runs as it is now, and once', async () => {
  const { ac, emit, seen: before, handle, gate } = await openTaking()
  const after = recorder()
  await handle.stop()
  ac.subscribe({ id: 'sub', from: 'start', handle: after.handle })
  await gate.open()
  await after.sees('first')
  await emit('second')
  await after.sees('second')
  expect([before.ids, after.ids]).toEqual([[], ['first', 'second']])
})
