import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { emptyFolder, runCli } from './support.ts'

beforeAll(buildPackage)

describe('the command line', () => {
  it('prints its version and its help to standard output', async () => {
    expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' })
    const help = await runCli(['--help'])
    expect(help.code).toBe(0)
    for (const verb of ['migrate', 'status', 'doctor', 'unblock', 'events', 'config'])
      expect(help.stdout).toContain(verb)
    const tail = await runCli(['events', 'tail', '--help'])
    expect(tail.stdout).toContain('--since')
    expect(tail.stdout).toContain('--database')
  })

  it('loads nothing but commander for help', async () => {
    const folder = emptyFolder()
    const hook = join(folder, 'hook.mjs')
    writeFileSync(
      hook,
      `import { register } from 'node:module'
       register('data:text/javascript,' + encodeURIComponent(\`
         import { writeSync } from 'node:fs'
         export async function resolve(specifier, context, next) {
           const found = await next(specifier, context)
           if (found.url.includes('node_modules')) writeSync(2, found.url + '\\\\n')
           return found
         }\`))`,
    )
    const { stderr } = await runCli(['--help'], { env: { NODE_OPTIONS: `--import=${hook}` } })
    const packages = new Set([...stderr.matchAll(/node_modules\/([\w-]+)\//g)].map(([, name]) => name))
    expect([...packages]).toEqual(['commander'])
  })

  it.each([
    [['stauts'], 'status'],
    [['events', 'lst'], 'list'],
    [['status', '--jsn'], '--json'],
  ])('answers %j with exit code 2 and what was probably meant', async (args, meant) => {
    const { code, stdout, stderr } = await runCli(args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain(`Did you mean ${meant}?`)
  })

  it.each([
    [['events', 'list', '--limit', 'many']],
    [['events', 'list', '--since', 'yesterday']],
    [['events', 'tail', '--from', 'start', '--since', '1h']],
    [['events', 'emit', 'order.placed', '--aggregate', 'order']],
    [['events', 'show']],
    [[]],
  ])('refuses %j as a wrong command line', async (args) => {
    expect(await runCli(args)).toMatchObject({ code: 2, stdout: '' })
  })

  it('exits with 4 when the database cannot be reached, and shows no password', async () => {
    const env = { DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:1/shop' }
    const { code, stderr } = await runCli(['status'], { env })
    expect(code).toBe(4)
    expect(stderr).toContain('"shop" at 127.0.0.1:1')
    expect(stderr).toContain('DATABASE_UNREACHABLE')
    expect(stderr).not.toContain('hunter2')
    expect(stderr).not.toContain('    at ')
    const verbose = await runCli(['status', '--verbose'], { env })
    expect(verbose.stderr).toContain('    at ')
    expect(verbose.stderr).not.toContain('hunter2')
    const json = await runCli(['status', '--json'], { env })
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'DATABASE_UNREACHABLE' } })
  })

  it('exits with 3 in production when no database is configured', async () => {
    const { code, stderr } = await runCli(['status'], { env: { NODE_ENV: 'production' } })
    expect(code).toBe(3)
    expect(stderr).toContain('NO_DATABASE')
    expect(stderr).not.toContain('using the embedded')
  })
})

describe('migrate', () => {
  it('lists what is pending, applies it step by step, and then has nothing to do', async () => {
    const { url } = await testDatabase()
    const env = { DATABASE_URL: url }
    const plan = await runCli(['migrate', '--dry-run', '--json'], { env })
    const { version, latest, pending } = JSON.parse(plan.stdout)
    expect({ version, first: pending[0] }).toEqual({ version: 0, first: '0001_log' })
    expect(pending).toHaveLength(latest)
    const done = await runCli(['migrate'], { env })
    expect(done.code).toBe(0)
    expect(done.stderr.match(/^✓ /gm)).toHaveLength(latest + 1)
    expect(done.stderr).toMatch(/✓ \d+ files of sql/)
    expect(done.stdout).toBe(`Schema is at version ${latest}.\n`)
    const again = await runCli(['migrate', '--json'], { env })
    expect(JSON.parse(again.stdout)).toEqual({ applied: [], placed: [], captured: [], version: latest, grants: [] })
    const script = await runCli(['migrate', '--sql'], { env })
    expect(script).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no SQL to run') })
  })

  it('gives the rights it can give and exits with 5 when one role does not exist', async () => {
    const { url } = await testDatabase()
    const owner = await connect(url)
    const role = `ac_cli_${randomBytes(4).toString('hex')}`
    await owner.query(`create role ${role} login`)
    onTestFinished(async () => {
      await owner.query(`drop owned by ${role}`)
      await owner.query(`drop role ${role}`)
    })
    const { code, stdout, stderr } = await runCli(['migrate', '--grant-emit', 'nobody_here', role, '--json'], {
      env: { DATABASE_URL: url },
    })
    expect(code).toBe(5)
    expect(stderr).toContain('role nobody_here was not given its rights')
    expect(JSON.parse(stdout).grants).toEqual([
      { right: 'emit', role: 'nobody_here', error: expect.stringContaining('does not exist') },
      { right: 'emit', role, error: null },
    ])
    const emitter = url.replace(/\/\/[^@/]*@/, `//${role}@`)
    const emitted = await runCli(['events', 'emit', 'order.placed'], { env: { DATABASE_URL: emitter } })
    expect(emitted).toMatchObject({ code: 0, stderr: '' })
    const refused = await runCli(['events', 'list'], { env: { DATABASE_URL: emitter } })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('NOT_ALLOWED') })
    const doctor = await runCli(['doctor', '--json'], { env: { DATABASE_URL: emitter } })
    expect(JSON.parse(doctor.stdout).findings).toContainEqual(
      expect.objectContaining({ level: 'note', check: 'rights', fix: expect.stringContaining(`--grant-run ${role}`) }),
    )
  })

  it('declares streams, and adopts plain events only when told', async () => {
    const { url } = await testDatabase({ migrated: true })
    const env = { DATABASE_URL: url }
    await runCli(['events', 'emit', 'order.placed', '--aggregate', 'order/1'], { env })
    expect(await runCli(['migrate', '--stream', 'order'], { env })).toMatchObject({ code: 1 })
    expect(await runCli(['migrate', '--stream', 'order', '--adopt-streams'], { env })).toMatchObject({ code: 0 })
    const next = await runCli(['events', 'emit', 'order.paid', '--aggregate', 'order/1', '--json'], { env })
    expect(JSON.parse(next.stdout).version).toBe(2)
  })
})

describe('before the log is installed', () => {
  it('status says so, and reading says what to run', async () => {
    const { url, name } = await testDatabase()
    const env = { DATABASE_URL: url }
    const status = await runCli(['status', '--json'], { env })
    expect(JSON.parse(status.stdout)).toMatchObject({
      server: { database: name },
      schema: { state: 'empty', version: 0 },
      log: null,
    })
    const list = await runCli(['events', 'list'], { env })
    expect(list).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('aftercommit migrate') })
    const doctor = await runCli(['doctor', '--quiet'], { env })
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining('→ aftercommit migrate') })
  })
})

describe('status', () => {
  it('tells people and programs the same', async () => {
    const { url, name } = await testDatabase()
    const env = { DATABASE_URL: url }
    await runCli(['migrate'], { env })
    for (const type of ['order.placed', 'order.paid']) await runCli(['events', 'emit', type], { env })
    const { stdout } = await runCli(['status', '--json'], { env })
    const found = JSON.parse(stdout)
    expect(found).toMatchObject({
      server: { database: name, standby: false },
      schema: { name: 'aftercommit', state: 'current', pending: [] },
      log: { epoch: 1, head: '2', frontier: '2', lag: 0, holders: [], wake: 'doorbell', problem: null },
      processes: [],
    })
    expect(found.partitions.at(-1)).toMatchObject({ name: 'events_open', to: null })
    const text = await runCli(['status', '-v'], { env })
    expect(text.stdout).toContain(`/${name}`)
    expect(text.stdout).toContain('head 2, frontier 2: all of it final')
    expect(text.stdout).toContain('events_open')
  })
})

describe('colour', () => {
  const colored = '\u001b['

  it('is left out of pipes, and forced or forbidden by the environment', async () => {
    const { url } = await testDatabase({ migrated: true })
    const show = async (env: Record<string, string>, ...flags: string[]) =>
      (await runCli(['status', ...flags], { env: { DATABASE_URL: url, ...env } })).stdout
    expect(await show({})).not.toContain(colored)
    expect(await show({ FORCE_COLOR: '1' })).toContain(colored)
    expect(await show({ FORCE_COLOR: '1', NO_COLOR: '1' })).not.toContain(colored)
    expect(await show({ FORCE_COLOR: '1' }, '--no-color')).not.toContain(colored)
  })
})
