/** One record per event in the whole cluster, with whoever did it, and none of the audit itself. */
import { describe, expect, it } from 'vitest'
import { toAuditRecord } from '../../src/hooks/audit-record.ts'
import { type AuditStore, auditHook, type HookContext } from '../../src/hooks/index.ts'
import { testEvent } from '../../src/testing/index.ts'
import { eventually } from '../support/eventually.ts'
import { openHooks } from './support/open-hooks.ts'

describe('a record', () => {
  it('names the user, the client or the system', () => {
    const actor = (metadata: object, payload: unknown = {}, type = 'order.placed') =>
      toAuditRecord(testEvent(type, { metadata: { ...metadata }, payload })).actor
    expect(actor({ userId: 'ada', client_id: 'web' })).toEqual({ kind: 'user', id: 'ada' })
    expect(actor({ client_id: 'cron' })).toEqual({ kind: 'client', id: 'cron' })
    expect(actor({})).toEqual({ kind: 'system', id: null })
    expect(actor({}, { user_id: 'eve' }, 'auth.login_failed')).toEqual({ kind: 'user', id: 'eve' })
  })

  it('says what happened, how it ended, from where and for which request', () => {
    const metadata = { ip: '10.0.0.1', request_id: 'r1', outcome: 'failure', reason: 'no stock' }
    const record = toAuditRecord(testEvent('order.placed', { aggregate: { type: 'order', id: '1' }, metadata }))
    expect(record).toMatchObject({ action: 'placed', entity: 'order', entityId: '1', outcome: 'failure' })
    expect(record).toMatchObject({ ip: '10.0.0.1', requestId: 'r1', reason: 'no stock' })
    expect(toAuditRecord(testEvent('order.updated'))).toMatchObject({ action: 'updated', outcome: 'success' })
    const failed = testEvent('auth.login_failed', { payload: { ip: '10.0.0.2', reason: 'password' } })
    expect(toAuditRecord(failed)).toMatchObject({ action: 'login_failed', outcome: 'failure', ip: '10.0.0.2' })
  })
})

const store: AuditStore = {
  async write({ id, action, actor, ip }, { tx }) {
    await tx.query('insert into audit_log values ($1, $2, $3, $4)', [id, action, actor.id, ip])
  },
}

describe('the audit hook', () => {
  it('records events that another audit hook caused, also one whose name begins with its own', async () => {
    const seen: string[] = []
    const marks: string[] = []
    const tx = { schema: 'aftercommit', query: async (_: string, [mark]: string[]) => void marks.push(mark!) } as never
    const context = { tx, signal: new AbortController().signal } as unknown as HookContext
    const auditing = (name: string) =>
      auditHook({ name, store: { write: ({ id }) => void seen.push(`${name} ${id}`) } })
    await auditing('a:b').handle(testEvent('order.placed', { id: '1' }), context)
    const caused = testEvent('audit.written', { id: '2', metadata: { causationId: marks[0]! } })
    await auditing('a:b').handle(caused, context)
    await auditing('a').handle(caused, context)
    expect(seen).toEqual(['a:b 1', 'a 2'])
  })

  it('records no event that this library emits for its own use', async () => {
    const seen: string[] = []
    const context = { tx: { query: async () => undefined }, signal: new AbortController().signal } as never
    const hook = auditHook({ store: { write: ({ type }) => void seen.push(type) } })
    for (const type of ['aftercommit.cache.invalidated', 'order.placed']) {
      await hook.handle(testEvent(type, { metadata: { userId: 'ada' } }), context)
    }
    expect(seen).toEqual(['order.placed'])
  })

  it('writes one record per event, however many instances there are', async () => {
    const { ac, another, sql, emitMany } = await openHooks()
    await sql.query('create table audit_log (id text, action text, actor text, ip text)')
    const instances = [ac, another(), another()]
    for (const instance of instances) instance.hooks.add(auditHook({ store }))
    await Promise.all(instances.map((instance) => instance.start()))
    await emitMany(50)
    await ac.emitAuth({ type: 'login', userId: 'ada', ip: '10.0.0.1' })
    await eventually(async () => (await sql.query('select from audit_log')).rowCount === 51)
    const { rows } = await sql.query(`select action, actor, ip from audit_log where action = 'login'`)
    expect(rows).toEqual([{ action: 'login', actor: 'ada', ip: '10.0.0.1' }])
  })

  it('records the actions and types it was asked for', async () => {
    const { ac, sql, emit } = await openHooks()
    await sql.query('create table audit_log (id text, action text, actor text, ip text)')
    ac.hooks.add(auditHook({ store, actions: ['created', 'login'], types: ['lamp.*', 'auth.*'] }))
    await ac.start()
    await emit('a', { type: 'lamp.created' })
    await emit('b', { type: 'lamp.updated' })
    await emit('c', { type: 'order.created' })
    const { id } = await ac.emitAuth({ type: 'login' })
    await eventually(async () => (await sql.query('select from audit_log where id = $1', [id])).rowCount === 1)
    expect((await sql.query('select id from audit_log order by id')).rows.map((row) => row.id).sort()).toEqual(
      ['a', id].sort(),
    )
  })

  it('never audits itself, whether its store emits in the process or by a trigger', async () => {
    const { ac, sql, emit } = await openHooks()
    await sql.query(`
      create table audit_log (id text, action text, actor text, ip text);
      create function emit_audit() returns trigger language plpgsql as $$
      begin
        perform aftercommit.emit('audit_log.created', 'audit_log', new.id, '{}', id => 'by-trigger-' || new.id);
        return new;
      end $$;
      create trigger capture after insert on audit_log for each row execute function emit_audit()`)
    const emitting: AuditStore = {
      async write(record, context) {
        await store.write(record, context)
        await ac.emitNow('audit.written', { id: `in-process-${record.id}`, payload: {} })
      },
    }
    ac.hooks.add(auditHook({ store: emitting }))
    await ac.start()
    await emit('one')
    await eventually(() => ac.log.get('by-trigger-one'))
    await emit('two')
    await eventually(async () => (await sql.query(`select from audit_log where id = 'two'`)).rowCount === 1)
    // The checkpoint is beyond everything that the two records caused.
    const head = (await ac.log.status()).head
    await eventually(async () => (await ac.subscriptions.get('hook:audit').status()).position >= head)
    expect((await sql.query('select id from audit_log order by id')).rows).toEqual([{ id: 'one' }, { id: 'two' }])
    expect((await ac.log.list({ limit: 100 })).map(({ id }) => id).sort()).toEqual(
      ['one', 'two', 'by-trigger-one', 'by-trigger-two', 'in-process-one', 'in-process-two'].sort(),
    )
    expect((await ac.log.get('by-trigger-one'))!.metadata).toMatchObject({ correlationId: 'one' })
  })
})
