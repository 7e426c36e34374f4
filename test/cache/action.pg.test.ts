/** `type = "cache"` from the file to the key that is gone, with a real Redis and real processes. */
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stringifyJson } from '../../src/events/index.ts'
import type { Aftercommit } from '../../src/instance.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { hasRedis, noRedis, startRedis } from '../support/redis.ts'

async function tomlFile(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ac-cache-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'aftercommit.toml')
  writeFileSync(file, text)
  return file
}

const redisTable = (url: string) => `[redis]\nurl = "${url}"\n`

const rule = (action: string, rest = '') => `
[observers.products]
on = ["lamp.*"]
${rest}
actions = [{ type = "cache", ${action} }]
`

/** What is wrong with a file, in one text. */
async function mistakesOf(ac: Aftercommit, text: string): Promise<string> {
  const file = await tomlFile(text)
  const failure = await ac.observers.loadFile(file).catch((error: Error) => error)
  return failure instanceof Error ? failure.message : 'none'
}

describe.runIf(hasRedis())('a cache action', () => {
  it('lets keys and patterns go in Redis, and a value of an event is never a pattern', async () => {
    const redis = await startRedis()
    const client = await redis.client()
    const { ac, emit, sql } = await openSubscriptions()
    const action = 'action = "invalidate", keys = ["p:{{ event.aggregate_id }}", "list:{{ event.aggregate_id }}:*"]'
    await ac.observers.loadFile(await tomlFile(redisTable(redis.url) + rule(action)))
    await ac.start()
    await client.mSet(['p:7', 'x', 'p:8', 'x', 'p:*', 'x', 'list:7:a', 'x', 'list:7:b', 'x', 'list:8:a', 'x'])
    await emit('a', { key: '7' })
    await eventually(async () => (await client.exists(['p:7', 'list:7:a', 'list:7:b'])) === 0)
    expect((await client.keys('*')).sort()).toEqual(['list:8:a', 'p:*', 'p:8'])
    await emit('b', { key: '*' })
    await eventually(async () => (await client.exists('p:*')) === 0)
    expect((await client.keys('*')).sort()).toEqual(['list:8:a', 'p:8'])
    // A call that takes long leaves a record of its own, before it is over.
    const { rows } = await eventually(async () => {
      const runs = await sql.query(
        `select actions::text from aftercommit.observer_runs where event_id = 'a' and status = 'success'`,
      )
      return runs.rowCount === 1 && runs
    })
    expect(rows[0].actions).toContain('removed 3 keys')
  })

  it('empties the caches inside all processes, also of one that knows no rule', async () => {
    const redis = await startRedis()
    const { ac, another, emit, sql } = await openSubscriptions()
    const other = another()
    await ac.observers.loadFile(
      await tomlFile(redisTable(redis.url) + rule('action = "invalidate", keys = "p:{{ event.aggregate_id }}"')),
    )
    const load = () => 'first'
    for (const instance of [ac, other]) {
      await instance.cache.get('p:7', load)
      await instance.start()
      await eventually(async () => {
        await instance.cache.get('p:7', load)
        return instance.cache.size === 1
      })
      instance.cache.set('p:8', 'kept')
    }
    await emit('a', { key: '7' })
    for (const instance of [ac, other]) {
      await eventually(async () => (await instance.cache.get('p:7', () => 'second')) === 'second')
      expect(await instance.cache.get('p:8')).toBe('kept')
    }
    // The rule is for everything that happens to lamps, and its own word is one event, caused by the first.
    const { rows } = await sql.query(
      `select metadata->>'causation_id' as cause from aftercommit.events where type like 'aftercommit.%'`,
    )
    expect(rows).toEqual([{ cause: 'a' }])
  })

  it('of a rule for all events does not answer itself', async () => {
    const redis = await startRedis()
    const { ac, emit, sql } = await openSubscriptions()
    const text = redisTable(redis.url) + rule('action = "invalidate", keys = "all-of-it"').replace('"lamp.*"', '"*"')
    await ac.observers.loadFile(await tomlFile(text))
    await ac.start()
    await emit('a')
    const count = () =>
      sql
        .query<{ runs: number }>(`select count(*)::int as runs from aftercommit.observer_runs where status = 'success'`)
        .then(({ rows }) => rows[0]!.runs)
    await eventually(async () => (await count()) === 2)
    await emit('b')
    await eventually(async () => (await count()) === 4)
    const { rows } = await sql.query(
      `select count(*)::int as said from aftercommit.events where type like 'aftercommit.%'`,
    )
    expect(rows).toEqual([{ said: 2 }])
  })

  it('arrives after Redis was away, in order for each key, and loses none', async () => {
    const redis = await startRedis()
    const { ac, emit } = await openSubscriptions()
    const done: string[] = []
    ac.observers.action('note', (event) => void done.push(event.id))
    const retry = 'retry = { max_attempts = 1000, initial_delay = "20ms", max_delay = "200ms" }'
    const text = `
[observers.products]
on = ["lamp.*"]
order_by = "aggregate"
sequential = true
${retry}
actions = [
  { type = "cache", action = "invalidate", target = "redis", keys = "p:{{ event.aggregate_id }}" },
  { type = "custom", handler = "note" },
]
`
    await ac.observers.loadFile(await tomlFile(redisTable(redis.url) + text))
    await ac.start()
    await emit('warm', { key: '0' })
    await eventually(() => done.includes('warm'))
    await redis.kill()
    for (let n = 0; n < 12; n++) await emit(`e${n}`, { key: String(n % 3) })
    await eventually(async () => (await ac.deliveries.list()).length > 0)
    expect(done).toEqual(['warm'])
    // Held until there is something to remove.
    const action = { kind: 'action', name: 'products/cache' } as const
    await ac.deliveries.pause(action, { who: 'ada' })
    await redis.start()
    const client = await redis.client()
    await client.mSet(['p:0', 'old', 'p:1', 'old', 'p:2', 'old'])
    await ac.deliveries.resume(action, { who: 'ada' })
    await eventually(() => done.length === 13, { deadline: 50_000 })
    expect(await client.exists(['p:0', 'p:1', 'p:2'])).toBe(0)
    for (let key = 0; key < 3; key++) {
      const ofKey = done.filter((id) => id !== 'warm' && Number(id.slice(1)) % 3 === key)
      expect(ofKey).toEqual([key, key + 3, key + 6, key + 9].map((n) => `e${n}`))
    }
    expect(await ac.deadLetters.list()).toEqual([])
  })

  it('loads anew by a registered loader, once for all events that came meanwhile', async () => {
    const redis = await startRedis()
    const client = await redis.client()
    const { ac, emit, sql } = await openSubscriptions()
    await sql.query('create table prices (id text primary key, price int)')
    await sql.query(`insert into prices values ('7', 1)`)
    ac.cache.loader('price:*', async (key) => {
      const { rows } = await ac.transaction((tx) =>
        tx.query<{ price: number }>('select price from prices where id = $1', [key.slice(6)]),
      )
      return rows[0]
    })
    await ac.observers.loadFile(
      await tomlFile(
        redisTable(redis.url) + rule('action = "refresh", keys = "price:{{ event.aggregate_id }}", ttl = "1h"'),
      ),
    )
    await ac.start()
    await emit('a', { key: '7' })
    await eventually(async () => (await client.get('price:7')) === '{"price":1}')
    for (let price = 2; price <= 20; price++) {
      await sql.query('update prices set price = $1', [price])
      await emit(`p${price}`, { key: '7' })
    }
    await eventually(async () => (await client.get('price:7')) === '{"price":20}')
    expect(await client.ttl('price:7')).toBeGreaterThan(0)
    await emit('no such product', { key: 'nobody' })
    await eventually(async () => {
      const { observers } = await ac.observers.explain('no such product')
      return observers[0]?.actions[0]?.state === 'done'
    })
    expect(await client.exists('price:nobody')).toBe(0)
  })

  it('shows what it would do without doing it, and no password', async () => {
    const redis = await startRedis({ password: 'canary-4711' })
    const client = await redis.client()
    const { ac, emit } = await openSubscriptions()
    await emit('a', { key: '7' })
    await client.set('p:7', 'x')
    await ac.observers.loadFile(
      await tomlFile(
        redisTable(redis.url) + rule('action = "invalidate", keys = ["p:{{ event.aggregate_id }}", "l:*"]'),
      ),
    )
    const report = stringifyJson(await ac.observers.test({ since: '1h' }), { name: 'report' })
    expect(report).toContain('"keys":["p:7","l:*"]')
    expect(report).not.toContain('canary')
    expect(await client.exists('p:7')).toBe(1)
    const findings = await ac.doctor()
    expect(findings).toContainEqual(expect.objectContaining({ level: 'ok', check: 'redis' }))
    expect(JSON.stringify(findings)).not.toContain('canary')
  })
})

describe('a cache action that cannot work', () => {
  it('is refused when the file is loaded, with everything that is wrong', async () => {
    const { ac } = await openSubscriptions()
    const [missing, broken, off] = [
      await mistakesOf(ac, rule('action = "invalidate", keys = "p:1"')),
      await mistakesOf(ac, `[redis]\nurl = "http://x"\n${rule('action = "invalidate", keys = "p:1"')}`),
      await mistakesOf(
        ac,
        `[redis]\nenabled = false\nurl = "redis://x"\n${rule('action = "invalidate", keys = "p:1"')}`,
      ),
    ]
    expect(missing).toContain('needs Redis, and [redis] is not there')
    expect(broken).toContain('redis.url')
    expect(broken).not.toContain('is not there')
    expect(off).toContain('[redis] is not enabled')
    const with_ = (action: string) => mistakesOf(ac, `[redis]\nurl = "redis://x"\n${rule(action)}`)
    expect(await with_('action = "invalidate", keys = ["p", "*"]')).toContain('means every key there is')
    expect(await with_('action = "invalidate", keys = "*", all = true')).toBe('none')
    expect(await with_('action = "invalidate", keys = []')).toContain('keys')
    expect(await with_('action = "invalidate", keys = "a", ttl = "1h"')).toContain('ttl')
    expect(await with_('action = "refresh", keys = "a"')).toContain('needs a loader')
    expect(await with_('action = "forget", keys = "a"')).toContain('action')
    ac.cache.loader('*', () => 1)
    expect(await with_('action = "refresh", keys = ["a:*"]')).toContain('is a pattern')
    expect(await with_('action = "refresh", keys = "a:{{ payload.id }}"')).toBe('none')
    expect(await mistakesOf(ac, rule('action = "invalidate", keys = "p:1", target = "process"'))).toBe('none')
  })

  it('is a dead letter at once when a value makes a pattern mean everything', async () => {
    const { ac, emit } = await openSubscriptions()
    const action = 'action = "invalidate", keys = "{{ payload.prefix }}*"'
    await ac.observers.loadFile(await tomlFile(redisTable(await noRedis()) + rule(action)))
    await ac.start()
    await emit('a', { payload: { prefix: '' } })
    const [letter] = await eventually(async () => {
      const letters = await ac.deadLetters.list({ kind: 'action' })
      return letters.length === 1 && letters
    })
    expect(letter).toMatchObject({ attempts: 1, error: { code: 'OB003' } })
    expect(letter!.error.message).toContain('means every key there is')
  })

  it('is told by doctor when Redis does not answer', async () => {
    const { ac } = await openSubscriptions()
    await ac.observers.loadFile(await tomlFile(redisTable(await noRedis())))
    const findings = await ac.doctor()
    expect(findings).toContainEqual(expect.objectContaining({ level: 'problem', check: 'redis' }))
    expect(findings.find(({ check }) => check === 'redis')?.message).toContain('ECONNREFUSED')
  })
})
