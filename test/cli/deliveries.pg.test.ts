import { beforeAll, describe, expect, it } from 'vitest'
import { mails, work } from '../delivery/support/open-delivering.ts'
import { gate, openOperating } from '../delivery/support/open-operating.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { runCli } from './support.ts'

beforeAll(buildPackage)

/** Deliveries 1 and 2 wait for a worker, 3 is due in an hour, 4 failed once, 5 is a timer of nobody. */
async function someWork() {
  const operating = await openOperating()
  const one = await operating.worker()
  await one.add(
    one.database,
    mails(2, { payload: { card: '4111-secret' }, destination: 'webhook https://mail.example' }),
  )
  await one.add(one.database, mails(1, { delayMs: 3_600_000 }))
  await one.add(one.database, mails(1, { owner: 'orders', key: 'order/4' }))
  await one.add(one.database, mails(1, { kind: 'timer', name: 'payment-due' }))
  await operating.sql.query(
    `update aftercommit.deliveries
        set attempts = 1, run_at = now() + interval '1 hour', error = '{"name":"Error","code":"ECONNREFUSED","message":"connect ECONNREFUSED 10.0.0.7:25"}'
      where id = 4`,
  )
  const env = { DATABASE_URL: operating.url }
  const cli = (...args: string[]) => runCli(['deliveries', ...args], { env })
  const json = async <T = Record<string, unknown>>(...args: string[]): Promise<T> =>
    JSON.parse((await cli(...args, '--json')).stdout)
  return { ...operating, one, env, cli, json }
}

describe('deliveries list and show', () => {
  it('show what was asked for, and payloads only where one is shown', async () => {
    const { cli, json, env } = await someWork()
    const ids = async (...args: string[]) => (await json<{ id: string }[]>('list', ...args)).map(({ id }) => id)
    expect(await ids()).toEqual(['1', '2', '3', '4', '5'])
    expect(await ids('--limit', '2', '--after', '2')).toEqual(['3', '4'])
    expect(await ids('--state', 'waiting', '--kind', 'timer')).toEqual(['5'])
    expect(await ids('--state', 'retrying')).toEqual(['4'])
    expect(await ids('--destination', 'webhook https://mail.example')).toEqual(['1', '2'])
    expect(await ids('--destination', 'https://mail.example')).toEqual(['1', '2'])
    expect(await ids('--owner', 'orders', '--name', 'mail')).toEqual(['4'])
    const { stdout } = await runCli(['deliveries', 'list'], { env: { ...env, COLUMNS: '80' } })
    expect(stdout).toMatch(/^ 4 +effect +mail +retrying +in \d+ min +1 +– +ECONN/m)
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(stdout).not.toContain('4111-secret')

    expect(await json('show', '4')).toMatchObject({ id: '4', key: 'order/4', error: { code: 'ECONNREFUSED' } })
    const shown = await cli('show', '1')
    expect(shown.stdout).toMatch(/state +waiting\n/)
    expect(shown.stdout).toContain('"card": "4111-secret"')
    expect(await cli('show', '99')).toMatchObject({ code: 1, stderr: expect.stringContaining('UNKNOWN_DELIVERY') })
    expect(await cli('show', 'x')).toMatchObject({ code: 2 })
    expect(await cli('list', '--state', 'gone')).toMatchObject({ code: 2, stderr: expect.stringContaining('retrying') })
    expect(await cli('list', '--name', 'mial')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Did you mean "mail"?'),
    })
    expect(await cli('list', '--destination', 'https://mial.example')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Did you mean "https://mail.example"?'),
    })
  })
})

describe('deliveries retry', () => {
  it('shows how many, asks, and makes due what waits for later', async () => {
    const { cli, rows, audit } = await someWork()
    const all = ['retry', '--all-matching', '--name', 'mail']
    expect(await cli(...all, '--dry-run')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Would retry 2 deliveries'),
    })
    expect(await cli(...all)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(await cli('retry', '--name', 'mail', '--yes')).toMatchObject({ code: 2 })
    expect(await cli('retry', '--yes')).toMatchObject({ code: 2 })
    expect(await cli('retry', '3', '--all-matching', '--yes')).toMatchObject({ code: 2 })
    expect(await rows('run_at > now()')).toBe(2)
    const partly = await cli('retry', '1', '3', '99', '--yes', '--json', '--who', 'ada', '--reason', 'now')
    expect(partly).toMatchObject({ code: 5, stdout: '{"matched":1,"changed":1}\n' })
    expect(partly.stderr).toMatch(/Delivery 1 is due already.*\nThere is no delivery 99/)
    expect(await cli('retry', '1', '--yes')).toMatchObject({ code: 1 })
    expect(await cli(...all, '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Due now: 1 delivery.'),
    })
    expect(await rows('run_at > now()')).toBe(0)
    expect(await audit()).toMatchObject([
      { who: 'ada', what: 'delivery.retry', reason: 'now' },
      { after: { count: 1 } },
    ])
  })
})

describe('deliveries cancel', () => {
  it('needs a reason, takes away what was chosen, and tells the worker that is at one', async () => {
    const { cli, one, rows, deliveries } = await someWork()
    const aborted = gate()
    one.register(
      work((_, { signal }) => {
        signal.addEventListener('abort', aborted.open)
        return aborted.opened
      }),
    )
    await eventually(async () => (await deliveries.count()).running === 2)
    expect(await cli('cancel', '1', '--yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') })
    expect(await cli('cancel', '1', '--yes', '--reason', 'test')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Cancelled 1 delivery.'),
    })
    await aborted.opened
    expect(await rows('id = 1')).toBe(0)
    const all = await cli('cancel', '--all-matching', '--kind', 'timer', '--yes', '--reason', 'test', '--json')
    expect(all).toMatchObject({ code: 0, stdout: '{"matched":1,"changed":1}\n' })
    expect(await rows('id = 5')).toBe(0)
  })
})

describe('deliveries pause and resume', () => {
  it('return when the workers know, and name what may have been meant', async () => {
    const { cli, one, rows, deliveries, json } = await someWork()
    const done: string[] = []
    expect(await cli('pause', 'mail', '--reason', 'provider is down')).toMatchObject({
      code: 0,
      stdout: 'Paused effect mail: 4 wait until it is resumed.\n',
    })
    one.register(work(({ name }) => void done.push(name)))
    one.register(work(({ name }) => void done.push(name), { name: 'other' }))
    await one.add(one.database, mails(1, { name: 'other' }))
    await eventually(() => done.length === 1)
    expect(done).toEqual(['other'])
    expect(await cli('pause')).toMatchObject({ code: 2 })
    expect(await cli('pause', 'mial')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Did you mean "mail"?'),
    })
    expect(await cli('pause', 'mail', '--kind', 'timer')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No timer is called "mail"'),
    })
    await one.add(one.database, mails(1, { kind: 'timer', delayMs: 3_600_000 }))
    expect(await cli('pause', 'mail')).toMatchObject({ code: 2, stderr: expect.stringContaining('Add --kind') })
    expect(await cli('resume', 'mail', '--kind', 'effect')).toMatchObject({ code: 0, stdout: 'Resumed effect mail.\n' })
    await eventually(() => done.filter((name) => name === 'mail').length === 2)
    expect(await cli('resume', 'mail', '--kind', 'effect')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('is not held back'),
    })

    const there = { destination: 'webhook https://mail.example' }
    await eventually(async () => (await rows('id in (1, 2)')) === 0)
    expect(await json('pause', '--destination', there.destination)).toEqual({ paused: [there], waiting: 0, running: 0 })
    expect((await cli('destinations')).stdout).toMatch(/^webhook https:\/\/mail\.example +paused +–/m)
    expect(await json('resume', '--destination', 'https://mail.example')).toEqual({ resumed: [there] })
    expect(await cli('resume', '--destination', 'https://mail.example')).toMatchObject({
      code: 0,
      stdout: 'https://mail.example is not held back; nothing was changed.\n',
    })
    expect(await deliveries.pauses()).toEqual([])
    expect(await rows("owner = 'orders'")).toBe(1)
  })
})

describe('status and doctor', () => {
  it('say how much there is to do, what nobody does, and what is held back', async () => {
    const { env, sql, cli } = await someWork()
    await sql.query(
      `insert into aftercommit.destinations (destination, failures, opened_at, open_until, concurrency)
       values ('webhook https://erp.example', 9, now() - interval '25 minutes', now() + interval '5 minutes', 5)`,
    )
    await cli('pause', 'mail', '--reason', 'provider is down')
    const { stdout } = await runCli(['status'], { env })
    expect(stdout).toMatch(/^Deliveries +1 waiting, 4 paused$/m)
    expect(stdout).toMatch(/no process works on\n +KIND.*\n +effect +mail +4 .*\n +timer +payment-due +1 /)
    expect(stdout).toMatch(/Paused deliveries\n +KIND.*\n +effect +mail .* provider is down/)
    expect(stdout).toMatch(/held back\n.*\n +webhook https:\/\/erp\.example +open +in \d min +9 +0 +0 +5 at once/)
    const status = JSON.parse((await runCli(['status', '--json'], { env })).stdout)
    expect(status.deliveries).toMatchObject({
      states: { waiting: 1, paused: 4, running: 0 },
      orphans: [{ name: 'mail', count: 4 }, { kind: 'timer' }],
      pauses: [{ name: 'mail', reason: 'provider is down' }],
      destinations: [{ destination: 'webhook https://erp.example', circuit: 'open' }],
    })
    const { findings } = JSON.parse((await runCli(['doctor', '--json'], { env })).stdout)
    const warnings = findings.filter(({ level }: { level: string }) => level === 'warning')
    expect(warnings.map(({ check }: { check: string }) => check)).toEqual(
      expect.arrayContaining(['deliveries', 'deliveries', 'circuits']),
    )
  })
})
