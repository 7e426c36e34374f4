import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { emptyFolder, runCli } from './support.ts'

beforeAll(buildPackage)

const RULES = `
[observers.bright]
on = "lamp.lit"
condition = "watts > 60"
retry = { schedule = ["1h"] }
[[observers.bright.actions]]
type = "log"
message = "{{ room | upper }} has {{ watts }} W"
[[observers.bright.actions]]
type = "custom"
handler = "dim"
config = { to = "{{ watts / 2 }}" }

[observers.doors]
on = "door.*"
actions = [{ type = "log" }]
`

function folderWith(rules: string, name = 'aftercommit.toml'): string {
  const folder = emptyFolder()
  writeFileSync(join(folder, name), rules)
  return folder
}

async function lamps(...events: { id: string; payload: object }[]) {
  const { url } = await testDatabase({ migrated: true })
  const ac = instance({ database: url })
  await ac.transaction((tx) => tx.emit(events.map((event) => ({ type: 'lamp.lit', ...event }))))
  return { ac, env: { DATABASE_URL: url } }
}

describe('observers validate', () => {
  it('counts what a right file holds, without a database', async () => {
    const cwd = folderWith(RULES)
    const human = await runCli(['observers', 'validate'], { cwd })
    expect(human).toMatchObject({ code: 0, stdout: 'aftercommit.toml: no mistakes; 2 observers with 3 actions.\n' })
    expect(human.stderr).toContain('The program must register: dim')
    const { stdout } = await runCli(['observers', 'validate', '--json'], { cwd })
    expect(JSON.parse(stdout)).toMatchObject({ observers: ['bright', 'doors'], actions: 3, handlers: ['dim'] })
  })

  it('shows every mistake of the file it is given with its line, and exits with 3', async () => {
    const cwd = emptyFolder()
    mkdirSync(join(cwd, 'rules'))
    writeFileSync(join(cwd, 'rules/lamps.toml'), RULES.replace('watts > 60', 'watts >').replace('| upper', '| uper'))
    const { code, stdout, stderr } = await runCli(['observers', 'validate', 'rules/lamps.toml'], { cwd })
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toContain('rules/lamps.toml:4:')
    expect(stderr).toContain('observers.bright.actions[0].message')
    expect(stderr).toContain('upper')
    const none = await runCli(['observers', 'validate'], { cwd })
    expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining('aftercommit.toml') })
  })
})

describe('observers validate with a database', () => {
  const rules = `
[observers.invoices]
on = "lamp.lit"
actions = [{ type = "database", name = "bill", function = "billing.notify" }]
`

  it('names a function that is missing there, and exits with 3', async () => {
    const { url } = await testDatabase({ migrated: true })
    const cwd = folderWith(rules)
    expect(await runCli(['observers', 'validate'], { cwd })).toMatchObject({ code: 0 })
    const { code, stderr } = await runCli(['observers', 'validate', '--database', url], { cwd })
    expect(code).toBe(3)
    expect(stderr).toContain('observers.invoices, action bill')
    expect(stderr).toContain('there is no such schema')
  })
})

describe('observers test', () => {
  it('tells what rules would have done, with examples, and calls no handler', async () => {
    const { env } = await lamps({ id: 'a', payload: { watts: 100, room: 'hall' } }, { id: 'b', payload: { watts: 40 } })
    const cwd = folderWith(RULES)
    const human = await runCli(['observers', 'test', '--since', '1h'], { env, cwd })
    expect(human.code).toBe(0)
    expect(human.stdout).toMatch(/bright +2 +1 +1 +0 +0 +2\n/)
    expect(human.stdout).toContain('HALL has 100 W')
    const one = await runCli(['observers', 'test', 'bright', '--since', '1h', '--samples', '0', '--json'], { env, cwd })
    expect(JSON.parse(one.stdout)).toMatchObject({
      ok: true,
      events: 2,
      observers: [
        { observer: 'bright', matched: 1, condition_false: 1, samples: [], actions: [{ would_send: 1 }, {}] },
      ],
    })
  })

  it('exits with 1 when a rule fails for some event, and names it', async () => {
    const { env } = await lamps({ id: 'a', payload: { watts: 'many', room: 'hall' } })
    const { code, stdout } = await runCli(['observers', 'test', '--since', '1h'], { env, cwd: folderWith(RULES) })
    expect(code).toBe(1)
    expect(stdout).toContain('condition, event a')
    expect(stdout).toContain('OB002')
  })

  it('refuses what it cannot try', async () => {
    const { env } = await lamps({ id: 'a', payload: {} })
    const cwd = folderWith(RULES)
    expect(await runCli(['observers', 'test'], { env, cwd })).toMatchObject({ code: 2 })
    const wrong = await runCli(['observers', 'test', 'brigth', '--since', '1h'], { env, cwd })
    expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('Did you mean "bright"?') })
    expect(await runCli(['observers', 'test', '--since', '1h'], { env })).toMatchObject({ code: 3 })
  })
})

describe('what observers did', () => {
  it('is explained for one event, and listed for each of them', async () => {
    const { ac, env } = await lamps({ id: 'before', payload: { watts: 10 } })
    ac.observers.action('dim', () => {
      throw new Error('no dimmer')
    })
    const cwd = folderWith(RULES)
    await ac.observers.loadFile(join(cwd, 'aftercommit.toml'))
    await ac.observers.add({ name: 'added', on: 'lamp.*', condition: 'has(fuse)', actions: [{ type: 'log' }] })
    await ac.start()
    const payload = { watts: 100, room: 'hall', note: '\u001b[2J' }
    await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'a', payload }))
    await eventually(async () => {
      const { observers } = await ac.observers.explain('a')
      return observers[0]!.actions[1]!.attempts.length > 0
    })
    await ac.deliveries.pause({ kind: 'action', name: 'bright/custom' }, { who: 'ada', reason: 'no dimmer' })

    const explained = await runCli(['events', 'explain', 'a'], { env: { ...env, COLUMNS: '90' }, cwd })
    expect(explained).toMatchObject({ code: 0, stderr: '' })
    expect(explained.stdout).toContain('✔ acts  version 1')
    expect(explained.stdout).toMatch(/watts +100\n/)
    expect(explained.stdout).toMatch(/ {2}log {2}done\n/)
    expect(explained.stdout).toContain('no dimmer')
    expect(explained.stdout).toContain('"message": "HALL has 100 W"')
    expect(explained.stdout).toContain('1 observer of other types: doors')
    expect(Math.max(...explained.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(90)
    const all = await runCli(['events', 'explain', '2', '--all'], { env, cwd })
    expect(all.stdout).toContain('It reacts to door.*, and not to this type.')

    const json = JSON.parse((await runCli(['events', 'explain', 'a', '--json'], { env, cwd })).stdout)
    expect(json).toMatchObject({ event: { id: 'a', payload: { watts: 100 } }, checkpoint: expect.any(String) })
    expect(json.observers.map((one: { observer: string; verdict: string }) => [one.observer, one.verdict])).toEqual([
      ['bright', 'matched'],
      ['added', 'condition_false'],
      ['doors', 'type'],
    ])
    expect(json.observers[0].actions[1]).toMatchObject({
      state: 'paused',
      attempts: [{ outcome: 'retry', code: 'OB004' }],
    })

    const list = await runCli(['observers', 'list'], { env, cwd })
    expect(list.stdout).toMatch(/bright +file +paused +lamp\.lit +watts > 60 +log, custom/)
    expect(list.stdout).toMatch(/added +elsewhere +on +lamp\.\* +has\(fuse\)/)
    expect(list.stderr).toContain('bright/custom is paused by ada: no dimmer')
    const status = JSON.parse((await runCli(['observers', 'list', '--json'], { env, cwd })).stdout)
    expect(status[0]).toMatchObject({
      name: 'bright',
      is_in_force: true,
      runs: { success: 0, failure: expect.any(Number) },
    })
  })

  it('is told from the database alone where the file has mistakes', async () => {
    const { env } = await lamps({ id: 'a', payload: {} })
    const explained = await runCli(['events', 'explain', 'a'], { env, cwd: folderWith('[observers.x]\n') })
    expect(explained).toMatchObject({ code: 0, stderr: expect.stringContaining('is left out') })
    const missing = await runCli(['events', 'explain', 'nothing'], { env })
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('EVENT_NOT_FOUND') })
  })
})
