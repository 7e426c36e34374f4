import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  checkOnlyPorts,
  loadActionPackages,
  loadConfigurationFile,
  toJsonSchema,
} from '../../../src/observers/index.ts'

const ZOD = import.meta.resolve('zod')

/** A module that brings one type, as its author would write it. */
const bringing = (type: string, more = '') => `
  import { z } from '${ZOD}'
  const one = {
    type: '${type}',
    describe: 'Does ${type}.',
    schema: z.strictObject({ loud: z.boolean().describe('how') }),
    defaultRetry: 'local',
    prepare: () => ({ run: () => ({}), preview: () => ({}) }),
    ${more}
  }
  export default one`

function project(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'ac-packages-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return join(folder, 'aftercommit.toml')
}

const file = (packages: readonly string[], more = '') =>
  `[actions]\npackages = ${JSON.stringify(packages)}\n[observers.a]\non = "a.b"\n${more}`
const action = (keys: string) => `actions = [{ ${keys} }]`

async function load(files: Readonly<Record<string, string>>) {
  const result = await loadConfigurationFile({ file: project(files) }, checkOnlyPorts({}))
  return result.ok ? result : { mistakes: result.mistakes.map(({ path, message }) => [path, message]) }
}

describe('a package of action types', () => {
  it('is found from the folder of the file, by name and by path, with one type or several', async () => {
    const result = await load({
      'aftercommit.toml': file(
        ['aftercommit-action-ring', '@acme/actions', './own.mjs'],
        'actions = [{ type = "ring", loud = true }, { type = "hum", loud = true }, { type = "own", loud = false }]',
      ),
      'node_modules/aftercommit-action-ring/package.json': '{ "type": "module", "exports": "./main.js" }',
      'node_modules/aftercommit-action-ring/main.js': bringing('ring'),
      'node_modules/@acme/actions/package.json': '{ "type": "module", "main": "x.js" }',
      'node_modules/@acme/actions/x.js': bringing('hum').replace(
        'export default one',
        "export default [one, { ...one, type: 'sing' }]",
      ),
      'own.mjs': bringing('own'),
    })
    expect(result).toMatchObject({ ok: true, actions: { packages: expect.any(Array) } })
    const { actionTypes } = result as { actionTypes: ReadonlyMap<string, unknown> }
    expect([...actionTypes.keys()]).toEqual(expect.arrayContaining(['webhook', 'ring', 'hum', 'sing', 'own']))
  })

  it('has its keys checked, described to editors, and suggested', async () => {
    const files = { 'own.mjs': bringing('ring') }
    const wrong = await load({
      ...files,
      'aftercommit.toml': file(['./own.mjs'], action('type = "ring", lout = true')),
    })
    expect(wrong).toEqual({
      mistakes: [
        ['observers.a.actions[0].loud', expect.stringContaining('is missing')],
        ['observers.a.actions[0].lout', expect.stringContaining('Did you mean "loud"?')],
      ],
    })
    const near = await load({ ...files, 'aftercommit.toml': file(['./own.mjs'], action('type = "rign", loud = true')) })
    expect(near).toMatchObject({ mistakes: [['observers.a.actions[0].type', expect.stringContaining('"ring"')]] })
    const place = project({ ...files, 'aftercommit.toml': '' })
    const read = { data: { actions: { packages: ['./own.mjs'] } }, files: [place] }
    const { actionTypes } = await loadActionPackages(read, checkOnlyPorts({}).actionTypes)
    expect(JSON.stringify(toJsonSchema(actionTypes))).toContain('"title":"ring","description":"Does ring."')
  })

  it.each([
    ['is not installed', ['no-such-package'], 'npm install no-such-package'],
    ['is not there', ['./none.mjs'], 'relative to the configuration file'],
    ['comes from elsewhere', ['data:text/javascript,export default 1'], 'must be the name of a package'],
    ['is a file by its whole name', ['/etc/passwd'], 'must be the name of a package'],
    ['is an address', ['https://example.com/x.mjs'], 'must be the name of a package'],
    ['belongs to Node.js', ['fs'], 'part of Node.js'],
    ['exports only for import', ['import-only'], 'for "default"'],
  ])('that %s is a mistake at its place', async (_, packages, expected) => {
    const result = await load({
      'aftercommit.toml': file(packages, action('type = "ring"')),
      'node_modules/import-only/package.json': '{ "type": "module", "exports": { "import": "./x.js" } }',
      'node_modules/import-only/x.js': bringing('ring'),
    })
    // The type that is missing for that is not reported as well.
    expect(result).toEqual({ mistakes: [['actions.packages[0]', expect.stringContaining(expected)]] })
  })

  it.each([
    ['nothing', 'export const one = 1', 'no default export'],
    ['a number', 'export default 1', 'not an object'],
    ['an empty list', 'export default []', 'an empty list'],
    ['a type without a name', bringing(''), '`type`'],
    ['a schema of something else', bringing('ring', 'schema: { parse() {} },'), 'not one of zod 4'],
    ['no patience', bringing('ring', 'defaultRetry: 3,'), '`defaultRetry`'],
    ['nothing to prepare', bringing('ring', 'prepare: undefined,'), '`prepare`'],
    ['a built-in type', bringing('webhook'), 'exists already'],
    ['an error', "throw new Error('postgres://app:canary@db/x is away')", 'could not be loaded'],
    ['no JavaScript', 'export default {', 'could not be loaded'],
    ['something that throws nothing', 'throw null', 'could not be loaded'],
    ['a trap', "export default { get type() { throw new Error('trapped') } }", 'could not be loaded'],
  ])('that exports %s is a mistake at its place', async (_, code, expected) => {
    const result = await load({ 'aftercommit.toml': file(['./own.mjs'], action('type = "log"')), 'own.mjs': code })
    expect(result).toEqual({ mistakes: [['actions.packages[0]', expect.stringContaining(expected)]] })
    expect(JSON.stringify(result)).not.toContain('canary')
  })

  it('that never ends loading is a mistake at its place, and not the end of the process', {
    timeout: 30_000,
  }, async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const code = 'await new Promise(() => {})\nexport default 1'
    const loading = load({ 'aftercommit.toml': file(['./own.mjs'], action('type = "log"')), 'own.mjs': code })
    await vi.waitUntil(() => vi.getTimerCount() > 0, { timeout: 20_000 })
    vi.advanceTimersByTime(10_000)
    expect(await loading).toEqual({ mistakes: [['actions.packages[0]', expect.stringContaining('not ready within')]] })
  })

  it('that cannot prepare is told as a mistake of the action, whatever it throws', async () => {
    for (const [prepare, expected] of [
      ["() => { throw new TypeError('x is not a function') }", 'cannot be prepared: x is not a function'],
      ['() => ({})', 'with run and preview'],
    ] as const) {
      const result = await load({
        'aftercommit.toml': file(['./own.mjs'], action('type = "ring", loud = true')),
        'own.mjs': bringing('ring', `prepare: ${prepare},`),
      })
      expect(result).toEqual({ mistakes: [['observers.a.actions[0]', expect.stringContaining(expected)]] })
    }
  })

  it('that is named wrongly in the file is reported by the schema alone', async () => {
    const result = await load({ 'aftercommit.toml': '[actions]\npackages = [1]\npackage = "x"' })
    expect(result).toEqual({
      mistakes: [
        ['actions.packages[0]', expect.stringContaining('must be text')],
        ['actions.package', expect.stringContaining('Did you mean "packages"?')],
      ],
    })
  })
})
