import { beforeAll, describe, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import { runCli, startCli } from './support.ts'

beforeAll(buildPackage)

async function emptyLog() {
  const { url } = await testDatabase({ migrated: true })
  const env = { DATABASE_URL: url }
  const emit = (...args: string[]) => runCli(['events', 'emit', ...args], { env })
  return { url, env, emit }
}

describe('events emit', () => {
  it('takes a payload from the command line or standard input, every digit of it', async () => {
    const { env, emit } = await emptyLog()
    const exact = '{"big": 12345678901234567890123}'
    const first = await emit(
      'order.placed',
      '--payload',
      exact,
      '--aggregate',
      'order/a/b',
      '--tenant',
      'acme',
      '--json',
    )
    expect(JSON.parse(first.stdout)).toMatchObject({ position: '1', version: null })
    const second = await runCli(['events', 'emit', 'order.placed', '--payload', '-'], { env, input: exact })
    expect(second).toMatchObject({ code: 0, stderr: '' })
    const { stdout } = await runCli(['events', 'list', '--payload', '--json'], { env })
    expect(stdout.match(/"big":12345678901234567890123\b/g)).toHaveLength(2)
    expect(JSON.parse(stdout)[1]).toMatchObject({ aggregate_type: 'order', aggregate_id: 'a/b', tenant: 'acme' })
  })

  it('appends an id of the caller once', async () => {
    const { emit } = await emptyLog()
    const once = await emit('order.placed', '--id', 'mine', '--json')
    const twice = await emit('order.placed', '--id', 'mine', '--json')
    expect(JSON.parse(once.stdout)).toEqual({ id: 'mine', position: '1', version: null })
    expect(twice.stdout).toBe(once.stdout)
  })

  it('says what is wrong with an event and appends nothing', async () => {
    const { env, emit } = await emptyLog()
    expect(await emit('Order.Placed')).toMatchObject({ code: 2, stderr: expect.stringContaining('order.placed') })
    expect(await emit('order.placed', '--payload', '{"a"')).toMatchObject({ code: 2 })
    const { stdout } = await runCli(['events', 'list', '--json'], { env })
    expect(JSON.parse(stdout)).toEqual([])
  })
})

describe('events list', () => {
  it('shows the newest first and what was asked for, without payloads', async () => {
    const { env, emit } = await emptyLog()
    await emit('order.placed', '--aggregate', 'order/1', '--payload', '{"secret":"s3cr3t"}', '--correlation', 'req-1')
    await emit('order.paid', '--aggregate', 'order/1', '--correlation', 'req-2')
    await emit('invoice.sent', '--aggregate', 'invoice/1', '--correlation', 'req-1')
    const list = async (...args: string[]) => (await runCli(['events', 'list', ...args], { env })).stdout
    const types = async (...args: string[]) =>
      JSON.parse(await list('--json', ...args)).map(({ type }: { type: string }) => type)
    expect(await types()).toEqual(['invoice.sent', 'order.paid', 'order.placed'])
    expect(await types('--on', 'order.*')).toEqual(['order.paid', 'order.placed'])
    expect(await types('--on', 'order.paid', 'invoice.sent')).toEqual(['invoice.sent', 'order.paid'])
    expect(await types('--aggregate', 'order/1', '--limit', '1')).toEqual(['order.paid'])
    expect(await types('--correlation', 'req-1')).toEqual(['invoice.sent', 'order.placed'])
    expect(await types('--since', '1h')).toHaveLength(3)
    expect(await types('--since', '2999-01-01')).toEqual([])
    expect(await list()).not.toContain('s3cr3t')
    expect(await list('--json')).not.toContain('s3cr3t')
    expect(await list('--payload')).toContain('s3cr3t')
  })

  it('fits into 80 columns, and cuts nothing when it goes elsewhere', async () => {
    const { env, emit } = await emptyLog()
    const type = `order.${'very_'.repeat(12)}long`
    await emit(type, '--aggregate', `customer/${'x'.repeat(100)}`)
    const narrow = await runCli(['events', 'list'], { env: { ...env, COLUMNS: '80' } })
    const lines = narrow.stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    expect(Math.max(...lines.map((line) => line.length))).toBe(80)
    expect(lines[1]).toContain('…')
    const wide = await runCli(['events', 'list'], { env })
    expect(wide.stdout).toContain(type)
    expect(wide.stdout).toContain('x'.repeat(100))
  })

  it('spells out what would repaint the terminal', async () => {
    const { url, env } = await emptyLog()
    const client = await connect(url)
    await client.query(`select aftercommit.emit('order.placed', 'order', E'\\x1b[2Jgone\\n', '{}')`)
    const { stdout } = await runCli(['events', 'list'], { env })
    expect(stdout).toContain('order/\\u001b[2Jgone\\u000a')
    expect(stdout).not.toContain('\u001b')
  })
})

describe('events show', () => {
  it('prints the payload, by id or position, and the user only when told', async () => {
    const { env, emit } = await emptyLog()
    await emit('order.placed', '--id', 'one', '--payload', '{"total":90}', '--user', 'alice')
    for (const key of ['one', '1']) {
      const { stdout } = await runCli(['events', 'show', key], { env })
      expect(stdout).toContain('"total": 90')
      expect(stdout).toContain('[REDACTED]')
      expect(stdout).not.toContain('alice')
    }
    const json = JSON.parse((await runCli(['events', 'show', 'one', '--json'], { env })).stdout)
    expect(json).toMatchObject({ payload: { total: 90 }, metadata: { user_id: '[REDACTED]' } })
    const revealed = await runCli(['events', 'show', 'one', '--reveal'], { env })
    expect(revealed.stdout).toContain('alice')
  })

  it('prints what led to an event and what it led to', async () => {
    const { env, emit } = await emptyLog()
    await emit('order.placed', '--id', 'a', '--correlation', 'r')
    await emit('order.paid', '--id', 'b', '--correlation', 'r', '--causation', 'a')
    await emit('invoice.sent', '--id', 'c', '--correlation', 'r', '--causation', 'b')
    const { stdout } = await runCli(['events', 'show', 'b', '--trace'], { env })
    const trace = stdout.slice(stdout.indexOf('trace'))
    expect(trace).toMatch(/order\.placed.*\n {4}order\.paid.*this one\n {6}invoice\.sent/)
    const json = JSON.parse((await runCli(['events', 'show', 'b', '--trace', '--json'], { env })).stdout)
    expect(json.ancestors).toMatchObject([{ id: 'a' }])
    expect(json.descendants).toMatchObject([{ id: 'c' }])
  })

  it('exits with 1 when there is no such event', async () => {
    const { env } = await emptyLog()
    const { code, stderr } = await runCli(['events', 'show', 'nothing'], { env })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('EVENT_NOT_FOUND') })
  })
})

describe('events tail', () => {
  it('prints what is there and what comes, one line each, until it is interrupted', async () => {
    const { env, emit } = await emptyLog()
    await emit('order.placed', '--id', 'early', '--payload', '{"secret":"s3cr3t"}')
    const tail = startCli(['events', 'tail', '--from', 'start', '--on', 'order.*', '--json'], { env })
    await tail.waitForLine('"early"')
    await emit('invoice.sent', '--id', 'other')
    await emit('order.paid', '--id', 'late')
    await tail.waitForLine('"late"')
    tail.kill('SIGINT')
    expect(await tail.exited).toEqual({ code: 130, signal: null })
    const events = tail.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    expect(events.map(({ id }) => id)).toEqual(['early', 'late'])
    expect(tail.lines.join('\n')).not.toContain('s3cr3t')
  })

  it('begins in the past when told, and at the head otherwise', async () => {
    const { env, emit } = await emptyLog()
    await emit('order.placed', '--id', 'early')
    const past = startCli(['events', 'tail', '--since', '1h', '--payload'], { env })
    await past.waitForLine('early')
    const now = startCli(['events', 'tail', '--json'], { env })
    const sql = await connect(env.DATABASE_URL)
    // It does not say when it has found the head, so events come until it shows one.
    await eventually(
      async () => {
        await sql.query(`select aftercommit.emit('order.late', null, null, '{}')`)
        return now.lines.some((line) => line.includes('order.late'))
      },
      { every: 200 },
    )
    await past.waitForLine('order.late')
    expect(now.lines.join('\n')).not.toContain('early')
  })

  it('goes on where it was when its connections are lost', async () => {
    const { url, emit } = await emptyLog()
    const proxy = await createProxy(url)
    await emit('order.placed', '--id', 'first')
    const tail = startCli(['events', 'tail', '--from', 'start', '--json', '--quiet'], {
      env: { DATABASE_URL: proxy.url },
    })
    await tail.waitForLine('"first"')
    proxy.reset()
    await emit('order.placed', '--id', 'second')
    proxy.pass()
    await tail.waitForLine('"second"')
    await emit('order.placed', '--id', 'third')
    await tail.waitForLine('"third"')
    tail.kill('SIGINT')
    expect((await tail.exited).code).toBe(130)
    const events = tail.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    expect(events.map(({ id }) => id)).toEqual(['first', 'second', 'third'])
  })
})
