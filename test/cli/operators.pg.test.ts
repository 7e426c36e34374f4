import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAftercommit, type Finding } from '../../src/index.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { runCli } from './support.ts'

beforeAll(buildPackage)

async function emptyLog() {
  const { url } = await testDatabase({ migrated: true })
  return { url, env: { DATABASE_URL: url } }
}

const EMIT = `select aftercommit.emit('order.placed', 'order', '1', '{}')`

/** A transaction that has taken a position and does nothing more. */
async function holdOpen(url: string): Promise<{ client: pg.Client; pid: number }> {
  const client = await connect(url)
  await client.query(`set application_name = 'shop-web'`)
  const { rows } = await client.query('select pg_backend_pid() as pid')
  await client.query('begin')
  await client.query(EMIT)
  return { client, pid: rows[0].pid }
}

async function holdPrepared(url: string, gid: string): Promise<void> {
  const client = await connect(url)
  onTestFinished(async () => void (await client.query(`rollback prepared '${gid}'`).catch(() => undefined)))
  await client.query('begin')
  await client.query(`set local aftercommit.bell = 'off'`)
  await client.query(EMIT)
  await client.query(`prepare transaction '${gid}'`)
}

async function readAudit(url: string) {
  const { rows } = await (await connect(url)).query(
    'select who, what, target, before, reason from aftercommit.audit order by id',
  )
  return rows
}

async function status(env: Record<string, string>) {
  return JSON.parse((await runCli(['status', '--json'], { env })).stdout)
}

describe('an appender that stays open', () => {
  it('is named by status, with its application and what waits behind it', async () => {
    const { url, env } = await emptyLog()
    const client = await connect(url)
    await client.query(EMIT)
    const { pid } = await holdOpen(url)
    await client.query(EMIT)
    expect((await status(env)).log).toMatchObject({
      head: '3',
      frontier: '1',
      lag: 1,
      holders: [{ pid, prepared_gid: null, application: 'shop-web', state: 'idle in transaction' }],
    })
    const { stdout } = await runCli(['status'], { env: { ...env, COLUMNS: '80' } })
    expect(stdout).toMatch(new RegExp(`pid ${pid} +shop-web .*idle in transaction`))
    // Where the database is cannot be made shorter.
    const lines = stdout.split('\n').filter((line) => !line.startsWith('Database'))
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('is ended by unblock once confirmed, and the frontier goes on', async () => {
    const { url, env } = await emptyLog()
    const { client, pid } = await holdOpen(url)
    const unasked = await runCli(['unblock', '--pid', String(pid)], { env })
    expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    await client.query('select 1')
    const ended = await runCli(['unblock', '--pid', String(pid), '--yes', '--reason', 'forgotten', '--json'], { env })
    expect(ended.code).toBe(0)
    expect(JSON.parse(ended.stdout).ended).toMatchObject({ pid, application: 'shop-web' })
    await expect(client.query('commit')).rejects.toThrow()
    await (await connect(url)).query(EMIT)
    expect((await status(env)).log).toMatchObject({ head: '2', frontier: '2', holders: [] })
    expect(await readAudit(url)).toEqual([
      {
        who: expect.stringContaining('@'),
        what: 'log.unblock',
        target: `pid ${pid}`,
        before: expect.objectContaining({ pid, application: 'shop-web' }),
        reason: 'forgotten',
      },
    ])
  })

  it('is left alone while it is young, unless its age does not matter', async () => {
    const { url, env } = await emptyLog()
    const { client } = await holdOpen(url)
    const patient = await runCli(['unblock', '--yes'], { env })
    expect(patient).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing was ended') })
    await client.query('select 1')
    expect(await runCli(['unblock', '--yes', '--older-than', '0s'], { env })).toMatchObject({ code: 0 })
    await expect(client.query('select 1')).rejects.toThrow()
  })
})

describe('a prepared transaction', () => {
  it('is found by doctor, named by status and rolled back by unblock', async () => {
    const { url, env } = await emptyLog()
    const gid = `ac_cli_${randomBytes(4).toString('hex')}`
    await holdPrepared(url, gid)
    expect((await status(env)).log.holders).toMatchObject([{ pid: null, prepared_gid: gid }])
    const findings = await diagnose(env)
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'prepared transactions', fix: `rollback prepared '${gid}'` }),
    )
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'frontier', fix: `aftercommit unblock --gid '${gid}'` }),
    )
    expect(await runCli(['unblock', '--gid', gid, '--yes'], { env })).toMatchObject({ code: 0 })
    expect((await status(env)).log.holders).toEqual([])
    expect(await readAudit(url)).toMatchObject([{ what: 'log.unblock', target: `gid ${gid}` }])
  })
})

describe('unblock', () => {
  it('ends nothing that does not hold the frontier back', async () => {
    const { url, env } = await emptyLog()
    const bystander = await connect(url)
    const { rows } = await bystander.query('select pg_backend_pid() as pid')
    await bystander.query('begin')
    const { code, stderr } = await runCli(['unblock', '--pid', String(rows[0].pid), '--yes'], { env })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('NOT_A_HOLDER') })
    await bystander.query('select 1')
    expect(await readAudit(url)).toEqual([])
    expect(await runCli(['unblock'], { env })).toMatchObject({ code: 0, stdout: 'Nothing holds the frontier back.\n' })
  })

  it('says which right is missing, ends nothing, and leaves a trace', async () => {
    const { url, env } = await emptyLog()
    const role = `ac_cli_${randomBytes(4).toString('hex')}`
    const owner = await connect(url)
    await owner.query(`create role ${role} login`)
    onTestFinished(async () => {
      await owner.query(`drop owned by ${role}`)
      await owner.query(`drop role ${role}`)
    })
    await runCli(['migrate', '--grant-run', role], { env })
    const { client, pid } = await holdOpen(url)
    const asRole = { DATABASE_URL: url.replace(/\/\/[^@/]*@/, `//${role}@`) }
    const { code, stderr } = await runCli(['unblock', '--pid', String(pid), '--yes'], { env: asRole })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('pg_signal_backend') })
    await client.query('commit')
    expect((await readAudit(url)).map(({ what }) => what)).toEqual(['log.unblock', 'log.unblock_failed'])
  })
})

async function diagnose(env: Record<string, string>): Promise<Finding[]> {
  return JSON.parse((await runCli(['doctor', '--json'], { env })).stdout).findings
}

describe('doctor', () => {
  it('has no problem with a fresh log, and exits with 0', async () => {
    const { env } = await emptyLog()
    const { code, stdout } = await runCli(['doctor', '--json'], { env })
    const { problems, findings } = JSON.parse(stdout)
    expect({ code, problems }).toEqual({ code: 0, problems: 0 })
    const well = findings.filter(({ level }: Finding) => level === 'ok').map(({ check }: Finding) => check)
    expect(well).toEqual(
      expect.arrayContaining([
        'node',
        'server version',
        'notifications',
        'rights',
        'schema',
        'sequence cache',
        'frontier',
      ]),
    )
  })

  it.each([18, 14] as const)(
    'finds a sequence that hands out numbers ahead of time on %s, and its fix works',
    async (major) => {
      const { url } = await testDatabase({ migrated: true, major })
      const env = { DATABASE_URL: url }
      const owner = await connect(url)
      await owner.query('alter sequence aftercommit.positions cache 50')
      const { code, stdout } = await runCli(['doctor', '--no-color'], { env })
      expect(code).toBe(1)
      expect(stdout).toMatch(/^problem +sequence cache +.*CACHE 50/m)
      const found = (await diagnose(env)).find(({ check }) => check === 'sequence cache')
      await owner.query(found?.fix ?? '')
      expect(await runCli(['doctor', '--quiet'], { env })).toMatchObject({ code: 0 })
    },
  )

  it('finds a sequence that was set back, without touching it', async () => {
    const { url, env } = await emptyLog()
    const owner = await connect(url)
    await owner.query(EMIT)
    await owner.query(EMIT)
    await owner.query(`select setval('aftercommit.positions', 1)`)
    const before = await diagnose(env)
    expect(before).toContainEqual(expect.objectContaining({ level: 'problem', check: 'sequence' }))
    expect((await owner.query('select epoch from aftercommit.log_state')).rows).toEqual([{ epoch: 1 }])
    await owner.query(before.find(({ check }) => check === 'sequence')?.fix ?? '')
    const after = await diagnose(env)
    expect(after).toContainEqual(expect.objectContaining({ level: 'ok', check: 'sequence' }))
    expect(after).toContainEqual(expect.objectContaining({ level: 'note', check: 'epoch' }))
  })

  it('finds events in the open partition, and its fix makes room', async () => {
    const { url, env } = await emptyLog()
    const owner = await connect(url)
    await owner.query(`select setval('aftercommit.positions', 2000010)`)
    await owner.query(EMIT)
    const found = (await diagnose(env)).find(({ check }) => check === 'partitions')
    expect(found?.level).toBe('warning')
    await owner.query(found?.fix ?? '')
    expect(await diagnose(env)).toContainEqual(expect.objectContaining({ level: 'ok', check: 'partitions' }))
    await owner.query('select aftercommit.split_partitions()')
    await owner.query(EMIT)
    expect((await owner.query('select count(*)::int as count from aftercommit.events')).rows).toEqual([{ count: 2 }])
  })

  it('finds an index that is not valid, and commits that a crash may take back', async () => {
    const { url, env } = await emptyLog()
    const owner = await connect(url)
    const { rows } = await owner.query('select current_database() as name')
    await owner.query(`alter database ${rows[0].name} set synchronous_commit = off`)
    await owner.query(`update pg_index set indisvalid = false where indexrelid = 'aftercommit.streams_pkey'::regclass`)
    const findings = await diagnose(env)
    for (const check of ['indexes', 'synchronous_commit']) {
      const found = findings.find((finding) => finding.check === check)
      expect(found?.level, check).toBe('warning')
      await owner.query(found?.fix ?? '')
    }
    const mended = (await diagnose(env)).filter(({ check }) => check === 'indexes' || check === 'synchronous_commit')
    expect(mended.map(({ level }) => level)).toEqual(['ok', 'ok'])
  })

  it('counts warnings as findings only when it is strict', async () => {
    const { url, env } = await emptyLog()
    const owner = await connect(url)
    await owner.query(`update pg_index set indisvalid = false where indexrelid = 'aftercommit.streams_pkey'::regclass`)
    expect((await runCli(['doctor'], { env })).code).toBe(0)
    expect((await runCli(['doctor', '--strict'], { env })).code).toBe(1)
  })

  it('notices processes of different versions and definitions, and forgives those without any', async () => {
    const { url, env } = await emptyLog()
    const owner = await connect(url)
    const register = (process: string, version: string, hash: string) =>
      owner.query(
        `insert into aftercommit.processes (process, host, pid, version, config_hash) values ($1, 'h', 1, $2, $3)`,
        [process, version, hash],
      )
    await register('a', '1.0.0', 'aaaa')
    const reader = createAftercommit({ database: url })
    onTestFinished(() => reader.stop())
    await reader.start()
    const warnings = async () =>
      (await diagnose(env))
        .filter(({ check, level }) => check === 'processes' && level === 'warning')
        .map(({ message }) => message)
    expect(await warnings()).toEqual([expect.stringContaining('Different versions')])
    await register('b', '1.0.0', 'bbbb')
    expect(await warnings()).toContainEqual(expect.stringContaining('different events'))
  })
})
