import { beforeAll, describe, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { logWithLetters, readAudit, type SubscribedLog } from './subscribed-log.ts'
import { runCli } from './support.ts'

beforeAll(buildPackage)

interface Letter {
  readonly id: string
  readonly status: string
}

async function statuses({ json }: SubscribedLog): Promise<Record<string, string>> {
  const letters = await json<Letter[]>('dlq', 'list')
  return Object.fromEntries(letters.map(({ id, status }) => [id, status]))
}

describe('dlq list', () => {
  it('shows the newest first, what was asked for, and nothing of what events carry', async () => {
    const { cli, json, env, sql } = await logWithLetters()
    const ids = async (...args: string[]) => (await json<Letter[]>('dlq', 'list', ...args)).map(({ id }) => id)
    expect(await ids()).toEqual(['2', '1'])
    const words = ['--owner', 'mail:receipts', '--kind', 'subscription', '--status', 'dead', '--error', 'ECONNREFUSED']
    expect(await ids(...words, '--limit', '1')).toEqual(['2'])
    expect(await ids('--before', '2')).toEqual(['1'])
    expect(await ids('--key', 'order/2')).toEqual(['2'])
    expect(await ids('--event', 'one')).toEqual(['1'])
    expect(await ids('--error', 'ETIMEDOUT')).toEqual([])
    expect(await ids('--pending')).toEqual([])
    await sql.query(`update aftercommit.letters set changed_at = changed_at - interval '6 minutes' where id = 1`)
    expect(await ids('--pending')).toEqual(['1'])
    const { stdout } = await runCli(['dlq', 'list'], { env: { ...env, COLUMNS: '80' } })
    expect(stdout).toMatch(/^ 1 +mail.* order\/1 +2, .* ago +ECONN.* 1 +dead$/m)
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(stdout + (await cli('dlq', 'list', '--json')).stdout).not.toContain('4111-secret')
  })

  it('names the subscription that may have been meant, and refuses words that are none', async () => {
    const { cli } = await logWithLetters()
    const { code, stderr } = await cli('dlq', 'list', '--owner', 'mail:receit')
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Did you mean "mail:receipts"?') })
    expect(await cli('dlq', 'list', '--status', 'gone')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/redriving/),
    })
    expect(await cli('dlq', 'list', '--before', 'x')).toMatchObject({ code: 2 })
    expect(await cli('dlq', 'list', '--limit', '1001')).toMatchObject({ code: 2 })
  })
})

describe('dlq show', () => {
  it('prints the error, the attempts and the event with its payload; the user only when asked', async () => {
    const { cli, json } = await logWithLetters()
    const { stdout } = await cli('dlq', 'show', '1')
    expect(stdout).toMatch(/attempts +2\n/)
    expect(stdout).toMatch(/waiting +1 event of the same key\n/)
    expect(stdout).toMatch(/message +connect ECONNREFUSED 10\.0\.0\.7:25\n/)
    expect(stdout).toContain('"card": "4111-secret"')
    expect(stdout).toContain('[REDACTED]')
    expect(stdout).not.toContain('ada')
    expect(await json('dlq', 'show', '1', '--reveal')).toMatchObject({
      id: '1',
      attempts: 2,
      error: { name: 'Error', code: 'ECONNREFUSED' },
      event: { id: 'one', payload: { fails: true }, metadata: { user_id: 'ada' } },
    })
  })

  it('says that there is no such letter', async () => {
    const { cli } = await logWithLetters()
    expect(await cli('dlq', 'show', '99')).toMatchObject({ code: 1, stderr: expect.stringContaining('UNKNOWN_LETTER') })
    expect(await cli('dlq', 'show', 'one')).toMatchObject({ code: 2 })
  })
})

describe('dlq redrive', () => {
  it('shows what it would mark and marks nothing until it is confirmed', async () => {
    const log = await logWithLetters()
    const all = ['dlq', 'redrive', '--all-matching', '--error', 'ECONNREFUSED']
    const dry = await log.cli(...all, '--dry-run')
    expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('Would redrive 2 dead letters') })
    expect(await log.cli(...all)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(await log.cli('dlq', 'redrive', '--yes')).toMatchObject({ code: 2 })
    expect(await log.cli('dlq', 'redrive', '--owner', 'mail:receipts', '--yes')).toMatchObject({ code: 2 })
    expect(await log.cli('dlq', 'redrive', '1', '--all-matching', '--yes')).toMatchObject({ code: 2 })
    expect(await statuses(log)).toEqual({ 1: 'dead', 2: 'dead' })
    expect(await readAudit(log.sql)).toEqual([])
  })

  it('has the owner run a letter, then what waits behind it, and leaves others alone', async () => {
    const log = await logWithLetters()
    log.subscriber.send('mend')
    await log.subscriber.waitForLine('did mend')
    const redriven = await log.cli('dlq', 'redrive', '1', '--yes', '--who', 'ada', '--reason', 'mail is back')
    expect(redriven).toMatchObject({ code: 0, stdout: expect.stringContaining('Marked 1 dead letter:') })
    await log.subscriber.waitForLine('mailed behind-one')
    expect(log.subscriber.lines.filter((line) => line.startsWith('mailed'))).toEqual([
      'mailed one',
      'mailed behind-one',
    ])
    await eventually(async () => (await statuses(log))[1] === 'resolved')
    expect(await statuses(log)).toEqual({ 1: 'resolved', 2: 'dead' })
    expect(await readAudit(log.sql)).toEqual([
      { who: 'ada', what: 'letter.redrive', target: 'mail:receipts', reason: 'mail is back' },
    ])
    const partly = await log.cli('dlq', 'redrive', '1', '2', '99', '--yes', '--json')
    expect({ code: partly.code, marked: JSON.parse(partly.stdout) }).toEqual({
      code: 5,
      marked: { matched: 1, marked: 1 },
    })
    expect(partly.stderr).toMatch(/Letter 1 is resolved.*\nThere is no dead letter 99/)
    expect(await log.cli('dlq', 'redrive', '1', '--yes')).toMatchObject({ code: 1 })
  })

  it('marks everything that matches, and says when nobody will run it', async () => {
    const log = await logWithLetters()
    await log.cli('subscriptions', 'pause', 'mail:receipts')
    const { code, stdout, stderr } = await log.cli('dlq', 'redrive', '--all-matching', '--yes')
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringContaining('Marked 2 dead letters:'),
      stderr: 'mail:receipts is paused: they wait until it is resumed.\n',
    })
    expect(await statuses(log)).toEqual({ 1: 'redriving', 2: 'redriving' })
    const again = await log.cli('dlq', 'redrive', '--all-matching', '--yes')
    expect(again).toMatchObject({ code: 0, stdout: 'No dead letter matches; nothing was done.\n' })
  })
})

describe('dlq discard', () => {
  it('needs a reason, keeps it, and lets go what waited behind', async () => {
    const log = await logWithLetters()
    expect(await log.cli('dlq', 'discard', '1', '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--reason'),
    })
    expect(await statuses(log)).toEqual({ 1: 'dead', 2: 'dead' })
    const discarded = await log.cli('dlq', 'discard', '1', '--yes', '--reason', 'a test order')
    expect(discarded).toMatchObject({ code: 0, stdout: expect.stringContaining('Discarded 1 dead letter') })
    await log.subscriber.waitForLine('mailed behind-one')
    expect(log.subscriber.lines).not.toContain('mailed one')
    expect(await log.json('dlq', 'show', '1')).toMatchObject({ status: 'discarded', reason: 'a test order' })
    expect(await readAudit(log.sql)).toMatchObject([{ what: 'letter.discard', reason: 'a test order' }])
  })
})

describe('dlq export', () => {
  it('prints a line of JSON per letter, whole, with users masked unless asked', async () => {
    const { cli } = await logWithLetters()
    const { code, stdout } = await cli('dlq', 'export', '--key', 'order/1')
    expect(code).toBe(0)
    const [letter, ...others] = stdout.trim().split('\n')
    expect(others).toEqual([])
    expect(JSON.parse(letter ?? '')).toMatchObject({
      id: '1',
      owner: 'mail:receipts',
      event: { id: 'one', payload: { card: '4111-secret' }, metadata: { user_id: '[REDACTED]' } },
    })
    expect((await cli('dlq', 'export', '--reveal')).stdout.match(/"user_id":"ada"/g)).toHaveLength(2)
  })
})
