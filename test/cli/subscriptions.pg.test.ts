import { hostname } from 'node:os'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { logWithLetters, readAudit, subscribedLog } from './subscribed-log.ts'
import { runCli } from './support.ts'

beforeAll(buildPackage)

describe('subscriptions list', () => {
  it('shows where each stands, who runs it and what it could not handle, in 80 columns', async () => {
    const { env, json, subscriber } = await logWithLetters()
    const owner = { process: expect.any(String), host: hostname(), pid: subscriber.pid, version: expect.any(String) }
    expect(await json('subscriptions', 'list')).toEqual([
      expect.objectContaining({ id: 'mail:receipts', position: '3', lag: '0', owner, dead_letters: 2, parked: 1 }),
      expect.objectContaining({ id: 'projection:sales', status: 'active', owner, dead_letters: 0, parked: 0 }),
    ])
    const { stdout } = await runCli(['subscriptions', 'list'], { env: { ...env, COLUMNS: '80' } })
    expect(stdout).toMatch(/^mail:receipts +active +3 +0 +– .* 2 +1$/m)
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('says that there are none', async () => {
    const { cli, sql, subscriber } = await subscribedLog()
    subscriber.kill()
    await subscriber.exited
    await sql.query('delete from aftercommit.subscriptions')
    expect(await cli('subscriptions', 'list')).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('No subscriptions'),
    })
  })
})

describe('subscriptions show', () => {
  it('adds the filter and the last event, without its payload', async () => {
    const { cli, json, emit, caughtUp } = await subscribedLog()
    await emit('first', '7', { card: '4111-secret' })
    await caughtUp()
    const { stdout } = await cli('subscriptions', 'show', 'mail:receipts')
    expect(stdout).toMatch(/events +order\.paid, order\.placed\n/)
    expect(stdout).toMatch(/last event +order\.placed of order\/7, first\n/)
    expect(stdout).toContain(`${hostname()}:`)
    const shown = await json('subscriptions', 'show', 'mail:receipts')
    expect(shown).toMatchObject({ on: ['order.paid', 'order.placed'], last_event: { id: 'first', position: '1' } })
    expect(JSON.stringify(shown) + stdout).not.toContain('4111-secret')
  })
})

describe('a subscription that does not exist', () => {
  it('is found by no verb, and each names the nearest', async () => {
    const { cli, sql } = await subscribedLog()
    for (const verb of ['show', 'pause', 'resume', 'remove']) {
      const { code, stderr } = await cli('subscriptions', verb, 'mail:receits', '--yes')
      expect({ code, stderr }, verb).toEqual({ code: 1, stderr: expect.stringContaining('UNKNOWN_SUBSCRIPTION') })
      expect(stderr, verb).toContain('Did you mean "mail:receipts"?')
    }
    expect(await readAudit(sql)).toEqual([])
  })
})

describe('subscriptions pause and resume', () => {
  it('hold back what comes in between, and say who did it and why', async () => {
    const { cli, json, emit, sql, subscriber } = await subscribedLog()
    const paused = await cli('subscriptions', 'pause', 'projection:sales', '--reason', 'deploy', '--who', 'ada')
    expect(paused).toEqual({ code: 0, stdout: 'Paused projection:sales at position 0.\n', stderr: '' })
    await emit('meanwhile', '1')
    await subscriber.waitForLine('mailed meanwhile')
    expect(await json('subscriptions', 'show', 'projection:sales')).toMatchObject({
      status: 'paused',
      owner: null,
      lag: '1',
      lag_seconds: expect.any(Number),
    })
    expect(subscriber.lines).not.toContain('counted meanwhile')
    expect((await cli('subscriptions', 'pause', 'projection:sales')).stdout).toContain('paused already')
    const resumed = await cli('subscriptions', 'resume', 'projection:sales')
    expect(resumed.stdout).toBe('Resumed projection:sales at position 0, 1 position behind.\n')
    await subscriber.waitForLine('counted meanwhile')
    expect((await cli('subscriptions', 'resume', 'projection:sales')).stdout).toContain('active already')
    expect(await readAudit(sql)).toEqual([
      { who: 'ada', what: 'subscription.pause', target: 'projection:sales', reason: 'deploy' },
      { who: expect.stringContaining('@'), what: 'subscription.resume', target: 'projection:sales', reason: null },
    ])
  })
})

describe('subscriptions seek', () => {
  it('moves nothing before it was confirmed, and says how much it would repeat', async () => {
    const { cli, json, emit, caughtUp, sql } = await subscribedLog()
    await emit('first', '1')
    await emit('second', '2')
    await caughtUp()
    const preview = 'projection:sales goes back from position 2 to 0: 2 events will be handled again.\n'
    const seek = ['subscriptions', 'seek', 'projection:sales', '--to', 'start']
    expect(await cli(...seek, '--dry-run')).toEqual({ code: 0, stdout: preview, stderr: '' })
    expect(await cli(...seek)).toEqual({ code: 2, stdout: preview, stderr: expect.stringContaining('--yes') })
    expect(await json(...seek, '--dry-run')).toEqual({ from: '2', to: '0', events: 2, direction: 'back', moved: false })
    expect(await json('subscriptions', 'show', 'projection:sales')).toMatchObject({ position: '2' })
    expect(await readAudit(sql)).toEqual([])
  })

  it('goes back to a position, and what follows is handled again', async () => {
    const { cli, emit, caughtUp, subscriber } = await subscribedLog()
    for (const id of ['first', 'second']) await emit(id, id)
    await caughtUp()
    const { code, stdout } = await cli('subscriptions', 'seek', 'projection:sales', '--to', '1', '--yes')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining('Moved projection:sales to position 1.'),
    })
    const counted = (id: string) => subscriber.lines.filter((line) => line === `counted ${id}`).length
    await eventually(() => counted('second') === 2)
    expect(counted('first')).toBe(1)
  })

  it('goes forward to the head, or to a time, past what will be skipped', async () => {
    const { json, cli, emit } = await subscribedLog()
    await cli('subscriptions', 'pause', 'projection:sales')
    for (const id of ['first', 'second', 'third']) await emit(id, id)
    const future = await json('subscriptions', 'seek', 'projection:sales', '--to', '2999-01-01', '--dry-run')
    expect(future).toMatchObject({ to: '3', events: 3, direction: 'forward' })
    expect(await json('subscriptions', 'seek', 'projection:sales', '--to', '1h', '--dry-run')).toMatchObject({
      direction: 'nowhere',
    })
    expect(await json('subscriptions', 'seek', 'projection:sales', '--to', 'head', '--yes')).toMatchObject({
      to: '3',
      events: 3,
      moved: true,
    })
    expect((await cli('subscriptions', 'seek', 'projection:sales', '--to', 'head')).stdout).toContain('nothing to do')
  })

  it('refuses a place that is none', async () => {
    const { cli, json, emit, caughtUp } = await subscribedLog()
    await emit('first', '1')
    await caughtUp()
    const seek = (...to: string[]) => cli('subscriptions', 'seek', 'projection:sales', ...to, '--yes')
    expect(await seek()).toMatchObject({ code: 2, stderr: expect.stringContaining('--to') })
    expect(await seek('--to', 'yesterday')).toMatchObject({ code: 2, stderr: expect.stringContaining('start, head') })
    expect(await seek('--to', '2')).toMatchObject({ code: 2, stderr: expect.stringContaining('beyond the head') })
    expect(await json('subscriptions', 'show', 'projection:sales')).toMatchObject({ position: '1' })
  })
})

describe('subscriptions remove', () => {
  it('says what is lost, asks, and forgets it with its letters; the log stays', async () => {
    const { cli, json, sql, subscriber } = await logWithLetters()
    const lost = 'its checkpoint at position 3, 2 open dead letters, 1 parked event.'
    const unasked = await cli('subscriptions', 'remove', 'mail:receipts')
    expect({ code: unasked.code, stderr: unasked.stderr }).toEqual({ code: 2, stderr: expect.stringContaining(lost) })
    expect(unasked.stderr).toContain(`It is running in ${hostname()}:${subscriber.pid}, `)
    expect(await json('dlq', 'list')).toHaveLength(2)
    subscriber.kill()
    await subscriber.exited
    const removed = await cli('subscriptions', 'remove', 'mail:receipts', '--yes', '--reason', 'gone')
    expect({ code: removed.code, stdout: removed.stdout }).toEqual({ code: 0, stdout: 'Removed mail:receipts.\n' })
    expect(await json('subscriptions', 'list')).toEqual([expect.objectContaining({ id: 'projection:sales' })])
    expect(await json('dlq', 'list')).toEqual([])
    expect(await json('events', 'list')).toHaveLength(3)
    expect(await readAudit(sql)).toMatchObject([
      { what: 'subscription.remove', target: 'mail:receipts', reason: 'gone' },
    ])
  })
})
