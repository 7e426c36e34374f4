/** When the checkpoint moves, seen from the table and from the next owner. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { heldTimers } from './support/held-timers.ts'
import { numbered, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('a checkpoint', () => {
  it('on a quiet system follows every event by itself', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.start()
    for (const id of ['first', 'second']) {
      const { position } = await emit(id)
      await eventually(async () => (await checkpointOf(sql)).position === position)
      expect(await checkpointOf(sql)).toMatchObject({ last_event_id: id })
    }
  })

  it('with `sync` is written before the next event begins', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await emitMany(100)
    const behind: bigint[] = []
    ac.subscribe({
      id: 'sub',
      checkpoint: 'sync',
      handle: async ({ position }) => {
        behind.push(position - (await checkpointOf(sql)).position)
      },
    })
    await ac.drain()
    expect(new Set(behind)).toEqual(new Set([1n]))
  })

  it('by count and delay: three events are written within the delay without further traffic', async () => {
    const delay = heldTimers(1_500)
    const { ac, sql, emitMany } = await openSubscriptions({ clock: delay.clock })
    await emitMany(3)
    const seen = recorder()
    ac.subscribe({ id: 'sub', checkpoint: { every: 100, within: '1500ms' }, handle: seen.handle })
    await ac.start()
    await seen.sees('event-3')
    expect((await checkpointOf(sql)).position).toBe(0n)
    delay.fire()
    await eventually(async () => (await checkpointOf(sql)).position === 3n)
  })

  it('by count and delay: a full batch does not wait for the delay, and a stop writes the rest', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await emitMany(250, { keys: 5 })
    const seen = recorder()
    ac.subscribe({ id: 'sub', checkpoint: { every: 100, within: '1h' }, handle: seen.handle })
    await ac.start()
    await seen.sees('event-250')
    await eventually(async () => (await checkpointOf(sql)).position >= 100n)
    await ac.stop()
    expect(await checkpointOf(sql)).toMatchObject({ position: 250n, last_event_id: 'event-250' })
  })

  it('moves over what the filter skips, to the head, although nothing more happens', async () => {
    const { ac, sql, emit, emitMany } = await openSubscriptions()
    ac.subscribe({ id: 'sub', on: ['door.opened'], handle: () => {} })
    await ac.start()
    await emit('opened', { type: 'door.opened' })
    await emitMany(2_000)
    await eventually(async () => (await checkpointOf(sql)).position === 2_001n)
  })

  it('remembers what was finished above an event that was not: the next owner runs that event alone', async () => {
    const { ac, sql, emitMany, another } = await openSubscriptions()
    await emitMany(20, { keys: 20 })
    const seen = recorder(({ id, attempt }) => {
      if (id === 'event-7' && attempt === 1) throw new Error('later')
    })
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 4, initialDelay: '1h', maxDelay: '1h' }, handle: seen.handle })
    await ac.start()
    await seen.sees('event-20')
    await ac.stop()
    const { rows } = await sql.query(`select position, done::text from aftercommit.subscription_partitions`)
    expect(rows).toEqual([{ position: '6', done: '{[8,21)}' }])
    const next = another()
    const again = recorder()
    next.subscribe({ id: 'sub', handle: again.handle })
    await next.drain()
    expect(again.ids).toEqual(['event-7'])
    expect((await checkpointOf(sql)).position).toBe(20n)
  })

  it('never moves back, with lanes, letters and parked keys at once', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await sql.query(`
      create table moves (n bigserial, position bigint, term bigint);
      create function note() returns trigger language plpgsql as $$
      begin
        insert into public.moves (position, term) values (new.position, new.term);
        return null;
      end $$;
      create trigger note after update of position on aftercommit.subscription_partitions
        for each row execute function note()`)
    await emitMany(600, { keys: 40 })
    const handled = new Set<string>()
    ac.subscribe({
      id: 'sub',
      concurrency: 8,
      failingAfter: 1_000,
      retry: { maxAttempts: 2, initialDelay: '1ms' },
      handle: async ({ id, position }) => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 4))
        if (position % 50n === 0n) throw new Error('a letter')
        handled.add(id)
      },
    })
    await ac.drain()
    const { rows } = await sql.query('select position from moves order by n')
    const positions = rows.map(({ position }) => Number(position))
    expect(positions).toEqual([...positions].sort((a, b) => a - b))
    const parked = (await sql.query('select count(*)::int as n from aftercommit.parked')).rows[0].n
    expect(handled.size + parked + (await ac.deadLetters.count())).toBe(600)
    expect((await checkpointOf(sql)).position).toBe(600n)
  })

  it('is flushed when the process stops under load: the next owner repeats nothing', async () => {
    const { ac, emitMany, another } = await openSubscriptions()
    await emitMany(3_000)
    const seen = recorder()
    ac.subscribe({ id: 'sub', checkpoint: { every: 10_000, within: '1h' }, handle: seen.handle })
    await ac.start()
    await eventually(() => seen.calls.length > 200, { every: 1 })
    await ac.stop()
    const next = another()
    const again = recorder()
    next.subscribe({ id: 'sub', handle: again.handle })
    await next.drain()
    expect([...seen.ids, ...again.ids]).toEqual(numbered(3_000))
  })
})

interface Sql {
  query(text: string): Promise<{ rows: { position: string; last_event_id: string | null }[] }>
}

/** The public view: what SQL users rely on. */
async function checkpointOf(sql: Sql): Promise<{ position: bigint; last_event_id: string | null }> {
  const { rows } = await sql.query(`select position, last_event_id from aftercommit.checkpoints where partition = 0`)
  return { position: BigInt(rows[0]?.position ?? 0), last_event_id: rows[0]?.last_event_id ?? null }
}
