import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Workflow } from '../../src/index.ts'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { testDatabase } from '../support/database.ts'
import { runCli } from './support.ts'

beforeAll(buildPackage)

const MODULE = fileURLToPath(new URL('./workflows.mjs', import.meta.url))
const { lamp } = (await import(MODULE)) as { lamp: Workflow }

/** One lamp burns in the hall, one in the attic is very bright, one in the cellar broke. */
async function someLamps() {
  const { url } = await testDatabase({ migrated: true })
  const ac = instance({ database: url })
  ac.workflows.register(lamp)
  await ac.workflows.execute(lamp, { type: 'light', id: 'hall/1', room: 'hall', watts: 60 })
  await ac.workflows.execute(lamp, { type: 'light', id: '2', room: 'attic', watts: 200 })
  await ac.workflows.execute(lamp, { type: 'light', id: '3', room: 'cellar', watts: 40 })
  await ac.workflows.execute(lamp, { type: 'break', id: '3' })
  const cli = (args: readonly string[], env: Record<string, string> = {}) =>
    runCli(args, { env: { DATABASE_URL: url, ...env } })
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse((await cli([...args, '--json'])).stdout)
  return { ac, cli, json }
}

describe('workflows list', () => {
  it('shows instances by their last event, page by page', async () => {
    const { ac, cli, json } = await someLamps()
    await ac.workflows.pause({ type: 'lamp', id: '2' })
    const { stdout, code } = await cli(['workflows', 'list'])
    expect(code).toBe(0)
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4))
    expect(rows.slice(1, 4)).toEqual([
      ['lamp', '3', 'completed', '2'].map((cell) => expect.stringMatching(cell)),
      ['lamp', '2', 'paused', '1'].map((cell) => expect.stringMatching(cell)),
      ['lamp', 'hall/1', 'open', '1'].map((cell) => expect.stringMatching(cell)),
    ])
    expect(stdout).toMatch(/hall$/m)
    const first = await json<{ items: { id: string }[]; next: string }>('workflows', 'list', '--limit', '2')
    const rest = await json<{ items: { id: string }[]; next: null }>('workflows', 'list', '--after', first.next)
    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual(['3', '2', 'hall/1'])
    expect(rest.next).toBeNull()
    expect((await cli(['workflows', 'list', '--type', 'tap'])).stderr).toContain('No workflows.')
  })
})

describe('workflows show', () => {
  it('shows the history without the code, and the state with it', async () => {
    const { cli, json } = await someLamps()
    const { stdout } = await cli(['workflows', 'show', 'lamp/hall/1'])
    expect(stdout).toMatch(/^lamp\/hall\/1\n {2}status +open\n {2}events +1\n {2}unique key +hall\n/)
    expect(stdout).toMatch(/timers\n.*\n +in \d h .* dimmer /)
    expect(stdout).toMatch(/1 {2}\S+ \S+ {2}lamp\.lit$/m)
    expect(stdout).not.toContain('watts')
    type Shown = { state: unknown; completed: boolean; events: { version: number; payload: unknown }[] }
    const shown = await json<Shown>('workflows', 'show', 'lamp/3', '--import', MODULE, '--payload')
    expect(shown.state).toEqual({ status: 'broken' })
    expect(shown.completed).toBe(true)
    expect(shown.events.map(({ version, payload }) => [version, payload])).toEqual([
      [1, { type: 'lit', watts: 40 }],
      [2, { type: 'broke' }],
    ])
  })

  it('draws the way of an instance', async () => {
    const { cli } = await someLamps()
    const draw = async (language: string) =>
      (await cli(['workflows', 'show', 'lamp/3', '--import', MODULE, '--diagram', language])).stdout
    expect(await draw('mermaid')).toMatch(/^stateDiagram-v2\n[\s\S]*s2 --> s3 : broke\n {2}s3 --> \[\*\]\n$/)
    expect(await draw('dot')).toMatch(/digraph "lamp" \{[\s\S]*s2 -> s3 \[label="broke"\]\n\}\n$/)
    const without = await cli(['workflows', 'show', 'lamp/3', '--diagram', 'dot'])
    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('--import')])
  })

  it('says when there is none, or none in the module', async () => {
    const { cli } = await someLamps()
    const missing = await cli(['workflows', 'show', 'lamp/4'])
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('UNKNOWN_WORKFLOW')])
    const other = await cli(['workflows', 'show', 'lamp/3', '--import', MODULE], { WORKFLOWS: 'none' })
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('registers no workflow of type "lamp"')])
  })
})

describe('workflows check', () => {
  it('is content with the code that wrote the histories, and says how much it looked at', async () => {
    const { cli, json } = await someLamps()
    const { code, stdout, stderr } = await cli(['workflows', 'check', '--import', MODULE])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^lamp +3 +4 +0 +4 +0 +0 +0$/m)])
    expect(stderr).toContain('Nothing was found.')
    const report = await json<{ types: object[]; findings: object[] }>('workflows', 'check', '--import', MODULE)
    expect(report).toMatchObject({ types: [{ type: 'lamp', instances: 3, events: 4 }], findings: [] })
  })

  it('finds histories that changed code cannot read, or ends otherwise, and exits with 1', async () => {
    const { cli } = await someLamps()
    const { code, stdout } = await cli(['workflows', 'check', '--import', MODULE], { WORKFLOWS: 'changed' })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^event {2}lamp\/2 at event 1: .*cannot be read/m)
    expect(stdout).toMatch(/^end {2}lamp\/3 at event 2: .*isTerminal/m)
    expect(stdout).not.toContain('hall/1')
  })

  it('shows which events would be others and which fields differ, and values only with --payload', async () => {
    const { cli } = await someLamps()
    const check = (...args: string[]) =>
      cli(['workflows', 'check', '--import', MODULE, ...args], { WORKFLOWS: 'brighter' })
    const { code, stdout } = await check()
    expect(code).toBe(1)
    const decided = String.raw`decided \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`
    expect(stdout).toMatch(
      new RegExp(
        `^decision  lamp/2 at event 0: An input would lead to other events now\\.\n  input light, ${decided}\n` +
          '  event 1 at position 2, lamp\\.lit, has another payload now:\n    payload\\.watts$',
        'm',
      ),
    )
    expect(stdout).toMatch(/^ {2}event 2 at position 4: lamp\.broke is recorded, lamp\.burst comes of it now$/m)
    expect(stdout).not.toMatch(/200|400/)
    expect((await check('--payload')).stdout).toContain('    payload.watts: 200 is recorded, 400 comes of it now\n')
    const { findings } = JSON.parse((await check('--json')).stdout)
    expect(findings[0]).toEqual({
      ...{ type: 'lamp', id: '2', version: 0, position: null, about: 'decision', paths: [] },
      message: 'An input would lead to other events now.',
      input: { type: 'light', id: null, decided_at: expect.any(String) },
      events: [
        { version: 1, position: '2', recorded: 'lamp.lit', now: 'lamp.lit', paths: [{ path: 'payload.watts' }] },
      ],
    })
  })

  it('asks for code', async () => {
    const { cli } = await someLamps()
    expect((await cli(['workflows', 'check'])).code).toBe(2)
    const empty = await cli(['workflows', 'check', '--import', MODULE], { WORKFLOWS: 'none' })
    expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('registers no workflow')])
  })
})

describe('timers list', () => {
  it('shows what instances wait for, soonest first', async () => {
    const { ac, cli, json } = await someLamps()
    await ac.workflows.pause({ type: 'lamp', id: 'hall/1' })
    const timers = await json<{ type: string; id: string; key: string; held: boolean }[]>('timers', 'list')
    expect(timers.map(({ type, id, key, held }) => [type, id, key, held])).toEqual([
      ['lamp', '2', 'dimmer', false],
      ['lamp', 'hall/1', 'dimmer', true],
    ])
    expect(await json('timers', 'list', '--type', 'lamp', '--id', '2')).toHaveLength(1)
    expect(await json('timers', 'list', '--type', 'tap')).toEqual([])
    const { stdout } = await cli(['timers', 'list'])
    expect(stdout).toMatch(/^ *held .*hall\/1/m)
    expect(stdout).toMatch(/^in \d h .* 2 +dimmer/m)
  })
})
