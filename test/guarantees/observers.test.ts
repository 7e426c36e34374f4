/**
 * Rules of a file do what they say for every event, whatever receivers do to them and whatever happens to the process:
 * killed while a retry waits or in the middle of a burst, given new rules under load, caught in a loop of its own making.
 * What was done is read from what receivers got.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { numbered } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'
import {
  brokenReceiver,
  drippingReceiver,
  endlessReceiver,
  hangingReceiver,
  redirectingReceiver,
} from '../support/receivers-behaviours.ts'
import { callRule, eventId, LOOPBACK, openObserving, repeatedIn, webhookId } from './support/observe.ts'

beforeAll(buildPackage)

const timedRule = (name: string, url: string, timeout: string) =>
  callRule(name, url).replace('"webhook",', `"webhook", timeout = "${timeout}",`)

describe('receivers in trouble', () => {
  it.each([
    ['hangs', hangingReceiver],
    ['drips', drippingReceiver],
  ])('one that %s for as long as it may leaves room for another', async (_, badReceiver) => {
    const [bad, healthy] = [await badReceiver(), await httpReceiver()]
    const game = await openObserving(LOOPBACK + timedRule('bad', bad.url, '10m') + callRule('healthy', healthy.url))
    await game.start()
    await game.emit(300)
    await eventually(() => new Set(healthy.calls.map(eventId)).size === 300, { deadline: 60_000 })
    expect(healthy.calls).toHaveLength(300)
    await eventually(() => bad.connections)
    // Nothing it was asked has ended.
    expect(bad.open).toBe(bad.connections)
  })

  it('that hang, drip, never end, redirect and break at once lose nothing of a healthy one, nor of their own', async () => {
    const healthy = await httpReceiver()
    const bad = {
      hanging: await hangingReceiver(),
      dripping: await drippingReceiver(),
      endless: await endlessReceiver(),
      redirecting: await redirectingReceiver(),
      broken: await brokenReceiver(),
    }
    // Those that answer have the time to do so: an answer that came too late would be asked for again.
    const patience = (name: string) => (name === 'hanging' || name === 'dripping' ? '1s' : '1m')
    const rules = Object.entries(bad).map(([name, { url }]) => timedRule(name, url, patience(name)))
    const game = await openObserving(LOOPBACK + rules.join('') + callRule('healthy', healthy.url))
    await game.start()
    await game.emit(300)
    await eventually(() => new Set(healthy.calls.map(eventId)).size === 300, { deadline: 60_000 })
    for (const one of Object.values(bad)) await eventually(() => one.connections)

    // A redirect is an answer for good, and what an endless one had to say was in its status.
    await eventually(async () => (await game.letters()).length === 300)
    const owners = (await game.letters()).map(({ owner, attempts }) => `${owner} ${attempts}`)
    expect(new Set(owners)).toEqual(new Set(['redirecting/webhook 1']))
    const waiting = async () => {
      const { rows } = await game.sql.query(
        `select l.name, count(*)::int as count
           from aftercommit.deliveries d
           join aftercommit.delivery_lanes l using (lane)
          group by l.name`,
      )
      return new Map(rows.map(({ name, count }) => [name, count]))
    }
    const all = ['hanging/webhook', 'dripping/webhook', 'broken/webhook'].map((name) => [name, 300] as const)
    await eventually(async () => expect(await waiting()).toEqual(new Map(all)))
    // What outlived its deadline or went on for too long was cut off; at most a probe is under way.
    for (const one of [bad.hanging, bad.dripping, bad.endless]) await eventually(() => one.open <= 1)
    expect(healthy.calls).toHaveLength(300)
    expect(healthy.calls.map(eventId).sort()).toEqual(numbered(300).sort())
  })
})

describe('a process that is killed', () => {
  it('while a retry waits: it is made when it was due, with the same id and the right count', async () => {
    const calls: { id: string; at: Promise<Date> }[] = []
    const receiver = await httpReceiver((response, call) => {
      calls.push({ id: webhookId(call), at: databaseTime() })
      response.writeHead(503).end()
    })
    const retry = 'retry = { max_attempts = 3, schedule = ["1h", "50ms"] }'
    const game = await openObserving(LOOPBACK + callRule('call', receiver.url, retry))
    const databaseTime = async () => (await game.sql.query('select clock_timestamp() as at')).rows[0].at as Date
    const first = await game.start()
    await game.emit(1)
    // The row is there and the event is passed: until then it would be read, and called about, once more.
    await eventually(async () => (await game.isPassed()) && (await game.deliveries('attempts = 1 and token is null')))
    first.kill('SIGKILL')
    await first.exited
    expect(calls).toHaveLength(1)

    // As if the hour were over soon.
    const { rows } = await game.sql.query(
      `update aftercommit.deliveries set run_at = clock_timestamp() + interval '4 seconds' returning run_at`,
    )
    const due: Date = rows[0].run_at
    await game.start()
    const [letter] = await eventually(async () => {
      const found = await game.letters()
      return found.length === 1 && found
    })
    expect(letter).toMatchObject({ owner: 'call/webhook', attempts: 3, error: { code: 'OB013' } })
    expect(calls).toHaveLength(3)
    expect((await calls[1]!.at).getTime()).toBeGreaterThanOrEqual(due.getTime())
    expect(new Set(calls.map(({ id }) => id)).size).toBe(1)
    expect(await game.deliveries()).toBe(0)
  })

  it('with one action under way and another that waits for its retry: only the one under way is made again', async () => {
    const slow = await hangingReceiver()
    const failing = await httpReceiver((response) => response.writeHead(503).end())
    const retry = 'retry = { max_attempts = 3, schedule = ["1h"] }'
    const game = await openObserving(
      LOOPBACK + timedRule('slow', slow.url, '10m') + callRule('failing', failing.url, retry),
    )
    const first = await game.start()
    await game.emit(3)
    // The events are not passed, and the retries are rows all the same.
    await eventually(async () => (await game.deliveries('attempts = 1')) === 3)
    expect(await game.unfinished()).toBe(3)
    first.kill('SIGKILL')
    await first.exited
    await game.start()
    await eventually(() => slow.connections === 6)
    expect(failing.calls).toHaveLength(3)
    expect(await game.deliveries()).toBe(3)
  })

  it('in the middle of a burst: every event arrives, and each goes by one id however often it does', async () => {
    const receiver = await httpReceiver((response, _, number) => setTimeout(() => response.end('ok'), number % 7))
    const game = await openObserving(LOOPBACK + callRule('call', receiver.url))
    const first = await game.start()
    await game.emit(600)
    await eventually(() => receiver.calls.length >= 200, { every: 1 })
    first.kill('SIGKILL')
    await first.exited
    expect(new Set(receiver.calls.map(eventId)).size).toBeLessThan(600)
    await game.start()
    await eventually(() => new Set(receiver.calls.map(eventId)).size === 600, { deadline: 60_000 })
    await eventually(async () => (await game.deliveries()) === 0)
    expect(repeatedIn(receiver.calls).mixedUp).toEqual([])
    expect(await game.letters()).toEqual([])
  })

  it('with calls under way: those are made again, and no other', async () => {
    let isOpen = false
    const held = new Set<string>()
    const receiver = await httpReceiver((response, call, number) => {
      if (number <= 50 || isOpen) response.end('ok')
      else held.add(eventId(call))
    })
    const rules = `${LOOPBACK}[runtime]\nmax_concurrency = 20\n${timedRule('call', receiver.url, '10m')}`
    const game = await openObserving(rules)
    const first = await game.start()
    await game.emit(200)
    // Calls that were answered are in the checkpoint, and those that waited for a place are rows.
    await eventually(async () => {
      const rows = await game.deliveries()
      return rows > 0 && rows === 150 - (await game.unfinished())
    })
    first.kill('SIGKILL')
    await first.exited
    // Calls that it had sent before its end have arrived, too.
    await eventually(() => receiver.open === 0)
    isOpen = true
    await game.start()
    await eventually(() => new Set(receiver.calls.map(eventId)).size === 200)
    await eventually(async () => (await game.deliveries()) === 0 && (await game.isPassed()))
    const { repeated, mixedUp } = repeatedIn(receiver.calls)
    expect(held.size).toBeLessThanOrEqual(20)
    expect(repeated.sort()).toEqual([...held].sort())
    expect(mixedUp).toEqual([])
    expect(await game.letters()).toEqual([])
  })
})

describe('new rules under load', () => {
  /** Whatever a configuration says, every event is either left's or right's; two configurations would make it both. */
  const version = (url: string, left: number, right: number) =>
    LOOPBACK +
    callRule('left', `${url}/left`, `condition = "n % 2 == ${left}"`) +
    callRule('right', `${url}/right`, `condition = "n % 2 == ${right}"`)

  it('skip no event and judge each by one configuration; a broken file changes nothing and is told of', async () => {
    const receiver = await httpReceiver()
    const game = await openObserving(version(receiver.url, 0, 1))
    const running = await game.start()
    let emitted = 0
    let isEmitting = true
    const emitting = (async () => {
      while (isEmitting) {
        await game.sql.query(`select aftercommit.emit('lamp.lit', null, null, jsonb_build_object('n', $1::int))`, [
          ++emitted,
        ])
      }
    })()
    const reloads = () => running.lines.filter((line) => line.includes('"configuration reloaded"')).length
    for (let n = 1; n <= 6; n++) {
      await eventually(() => receiver.calls.length >= n * 60)
      game.write(version(receiver.url, n % 2, 1 - (n % 2)))
      running.kill('SIGHUP')
      await eventually(() => reloads() === n)
    }
    game.write(version(receiver.url, 1, 0).replace('condition', 'condtion'))
    running.kill('SIGHUP')
    await running.waitForLine('configuration not reloaded; the one in force stays')
    await running.waitForLine('Did you mean "condition"?')
    const before = emitted
    await eventually(() => emitted >= before + 50)
    isEmitting = false
    await emitting
    await eventually(() => receiver.calls.length >= emitted)
    await eventually(async () => (await game.deliveries()) === 0)

    const numbers = receiver.calls.map(({ body }) => (JSON.parse(body) as { data: { n: number } }).data.n)
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: emitted }, (_, n) => n + 1))
    expect(await game.letters()).toEqual([])
    // The last that counted was the first again.
    const last = receiver.calls.filter(({ body }) => JSON.parse(body).data.n > before)
    expect(last.length).toBeGreaterThanOrEqual(50)
    for (const { path, body } of last) expect(path).toBe(JSON.parse(body).data.n % 2 === 0 ? '/left' : '/right')
  })
})

it('a rule that causes its own event is stopped after 32 rounds by one dead letter, and others go on', async () => {
  const receiver = await httpReceiver()
  const game = await openObserving(
    `${LOOPBACK}${callRule('tell', receiver.url)}
[observers.loop]
on = "lamp.lit"
actions = [{ type = "custom", handler = "again" }]
`,
  )
  game.write(
    `export default (ac) =>
       ac.observers.action('again', () => ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} })))`,
    'handlers.mjs',
  )
  await game.start('--import', 'handlers.mjs')
  await game.emit(1)
  const [letter] = await eventually(async () => {
    const found = await game.letters()
    return found.length === 1 && found
  })
  expect(letter).toMatchObject({ owner: 'loop/custom', attempts: 1, event: { metadata: { depth: 32 } } })
  expect(letter!.error.message).toContain('more than 32')
  await eventually(() => receiver.calls.length === 33)

  await game.emit(1, 'later-')
  await eventually(() => receiver.calls.length === 66)
  expect(receiver.calls.map(eventId)).toContain('later-1')
  await eventually(async () => (await game.letters()).length === 2)
  await eventually(async () => (await game.deliveries()) === 0)
})

it('a rule that is taken away leaves its retries as nobody’s, and they are done when it is back', async () => {
  let works = false
  const receiver = await httpReceiver((response) => response.writeHead(works ? 200 : 503).end())
  const other = await httpReceiver()
  const rules = LOOPBACK + callRule('call', receiver.url, 'retry = { schedule = ["1h"] }')
  const game = await openObserving(rules)
  const running = await game.start()
  const orphans = async () => JSON.parse((await game.cli('status', '--json')).stdout).deliveries.orphans
  await game.emit(3)
  await eventually(async () => (await game.deliveries('attempts = 1 and token is null')) === 3)

  game.write(LOOPBACK + callRule('other', other.url))
  running.kill('SIGHUP')
  await running.waitForLine('"configuration reloaded"')
  works = true
  await game.sql.query('update aftercommit.deliveries set run_at = clock_timestamp()')
  await game.emit(1, 'meanwhile-')
  await eventually(() => other.calls.length === 1)
  expect(receiver.calls).toHaveLength(3)
  expect(await orphans()).toMatchObject([{ kind: 'action', name: 'call/webhook', count: 3 }])

  game.write(rules)
  running.kill('SIGHUP')
  await eventually(async () => (await game.deliveries()) === 0)
  expect(await orphans()).toEqual([])
  expect(receiver.calls).toHaveLength(6)
  const { repeated, mixedUp } = repeatedIn(receiver.calls)
  expect(repeated.sort()).toEqual(numbered(3))
  expect(mixedUp).toEqual([])
  expect(await game.letters()).toEqual([])
})
