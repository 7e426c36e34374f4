import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfiguration } from '../../src/cli/config.ts'
import { SETTINGS } from '../../src/cli/config-settings.ts'
import { exitCodeOf } from '../../src/cli/failure.ts'
import { type ConfigError, keysOf, settingsSchema, settingsShape } from '../../src/configuration/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'aftercommit-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function fileWith(text: string): string {
  const path = join(folder, `${++files}.toml`)
  writeFileSync(path, text)
  return path
}

function load(text: string, env: Record<string, string> = {}, flags: { database?: string; schema?: string } = {}) {
  return loadConfiguration({ ...flags, config: fileWith(text) }, env)
}

function checkWhole(text: string, env: Record<string, string> = {}) {
  return loadConfiguration({ config: fileWith(text) }, env, 'everything')
}

async function mistakesOf(loading: Promise<unknown>) {
  const error = await loading.then(
    () => undefined,
    (thrown: ConfigError) => thrown,
  )
  expect(exitCodeOf(error)).toBe(3)
  return error?.mistakes.map(({ where, ...rest }) => ({ where: where.replace(/^.*\.toml/, 'file'), ...rest })) ?? []
}

describe('precedence', () => {
  it('is decided setting by setting: flag, environment, file, default', async () => {
    const text = `schema = "from_file"\ndatabase = "postgres://file/x"\n[log]\nwake = "poll"\nmax_depth = 7\n`
    const env = { DATABASE_URL: 'postgres://env/x', AFTERCOMMIT_LOG_MAX_DEPTH: '9', AFTERCOMMIT_SCHEMA: 'from_env' }
    const { settings, options, isEmbedded } = await load(text, env, { schema: 'from_flag' })
    const origins = Object.fromEntries(settings.map(({ name, value, origin }) => [name, [value, origin]]))
    expect(origins).toMatchObject({
      schema: ['from_flag', 'flag'],
      database: ['postgres://env/x', 'environment'],
      'log.max_depth': [9, 'environment'],
      'log.wake': ['poll', 'file'],
      'log.max_nesting': [64, 'default'],
    })
    expect(isEmbedded).toBe(false)
    expect(options).toEqual({
      database: 'postgres://env/x',
      directDatabase: undefined,
      schema: 'from_flag',
      log: { retention: undefined, wake: 'poll', maxPayload: undefined, maxNesting: undefined, maxDepth: 9 },
    })
  })

  it('takes an empty variable for none, and no database for the embedded one', async () => {
    const { isEmbedded, options } = await load('', { DATABASE_URL: '', AFTERCOMMIT_LOG_WAKE: '' })
    expect(isEmbedded).toBe(true)
    expect(options.database).toBeUndefined()
    expect(options.log?.wake).toBeUndefined()
  })

  it('reads a reference to the environment', async () => {
    const text = `database = "\${env:SHOP_DB}"`
    expect((await load(text, { SHOP_DB: 'postgres://shop/x' })).options.database).toBe('postgres://shop/x')
    expect(await mistakesOf(load(text))).toMatchObject([
      { where: 'file:1:12', message: expect.stringContaining('SHOP_DB') },
    ])
  })
})

describe('mistakes', () => {
  it('are all reported at once, in the order of the file, each with its place and a suggestion', async () => {
    const text = [
      'shema = "x"',
      '',
      '[log]',
      'wake = "dorbell"',
      'max_payload = true',
      'max_nesting = 0',
      'retention = "30 days"',
      '[obervers.big]',
      'on = "a.b"',
    ].join('\n')
    const found = await mistakesOf(load(text, { AFTERCOMMIT_LOG_MAX_DEPTH: 'deep' }))
    expect(found.map(({ where, path }) => [where, path])).toEqual([
      ['AFTERCOMMIT_LOG_MAX_DEPTH', 'log.max_depth'],
      ['file:1:1', 'shema'],
      ['file:4:8', 'log.wake'],
      ['file:5:15', 'log.max_payload'],
      ['file:6:15', 'log.max_nesting'],
      ['file:7:13', 'log.retention'],
      ['file:8:2', 'obervers'],
    ])
    expect(found[1]?.message).toBe('is not a setting. Did you mean "schema"?')
    expect(found[2]?.message).toBe('must be "doorbell" or "poll", not "dorbell". Did you mean "doorbell"?')
    expect(found[2]?.frame).toBe('    4 | wake = "dorbell"\n      |        ^^^^^^^^^')
  })

  it('find inline tables and dotted keys too', async () => {
    expect(await mistakesOf(load('log = { wake = "x" }'))).toMatchObject([{ where: 'file:1:16', path: 'log.wake' }])
    expect(await mistakesOf(load('log.wake = 5'))).toMatchObject([{ where: 'file:1:12', path: 'log.wake' }])
    expect(await mistakesOf(load('log = 5'))).toMatchObject([{ where: 'file:1:7', message: 'must be a table, not 5.' }])
  })

  it('point at text that is not TOML', async () => {
    expect(await mistakesOf(load('schema = "x"\n[log\n'))).toMatchObject([
      { path: '(TOML)', message: 'Unterminated table-key.' },
    ])
    expect(await mistakesOf(load('schema = "x"\nschema = "y"\n'))).toMatchObject([{ where: 'file:2:1' }])
  })

  it('never show a secret, known or not', async () => {
    const text = 'database = "mysql://u:hunter2@h/x"\npasswrd = "hunter2"'
    expect(JSON.stringify(await mistakesOf(load(text)))).not.toContain('hunter2')
    expect(JSON.stringify(await mistakesOf(load('password = "hunter2')))).not.toContain('hunter2')
    expect(JSON.stringify(await mistakesOf(load('', { DATABASE_URL: 'hunter2' })))).not.toContain('hunter2')
  })

  it('treat a key named like a prototype as any other', async () => {
    const found = await mistakesOf(load('__proto__ = 1\n[log]\n"constructor" = 2\n[log.__proto__]\npolluted = 1'))
    expect(found.map(({ path }) => path)).toEqual(['__proto__', 'log.constructor', 'log.__proto__'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('say so when the file that was named is not there', async () => {
    const missing = loadConfiguration({ config: join(folder, 'none.toml') }, {})
    expect(await mistakesOf(missing)).toMatchObject([{ message: expect.stringContaining('no such file') }])
  })
})

describe('observers in the file', () => {
  const text = [
    'database = "postgres://db/x"',
    '[observers.mail]',
    'on = "order.placed"',
    'conditon = "total > 5"',
    '[[observers.mail.actions]]',
    'type = "webhook"',
    'url = "https://erp.example.com/{{ event.idd }}"',
    `secret = "\${env:ERP_SECRET}"`,
  ].join('\n')

  it('are left alone by commands that only want a database', async () => {
    expect((await load(text)).options.database).toBe('postgres://db/x')
  })

  it('are checked whole by config check, variables included', async () => {
    const found = await mistakesOf(checkWhole(text))
    expect(found.map(({ where, path }) => [where, path])).toEqual([
      ['file:4:1', 'observers.mail.conditon'],
      ['file:7:41', 'observers.mail.actions[0].url'],
      ['file:8:10', 'observers.mail.actions[0].secret'],
    ])
  })

  it('may use handlers that only the application knows', async () => {
    const custom = '[observers.erp]\non = "a.b"\nactions = [{ type = "custom", handler = "sync_to_erp" }]'
    await expect(checkWhole(custom)).resolves.toMatchObject({ isEmbedded: true })
  })
})

describe('the schema of the file', () => {
  it('knows every setting that commands use, and agrees with them about defaults', () => {
    const log = keysOf(settingsShape.log.unwrap()) ?? []
    for (const { name, fallback } of SETTINGS) {
      const [first = '', second] = name.split('.')
      if (second === undefined) expect(keysOf(settingsSchema)).toContain(first)
      else expect(log).toContain(second)
      const field =
        second === undefined ? settingsShape[first as 'schema'] : settingsShape.log.unwrap().shape[second as 'wake']
      const { default: told } = field.unwrap().meta() as { default?: unknown }
      if (name !== 'direct_database') expect(told, name).toBe(fallback)
    }
  })

  it('accepts every default', async () => {
    const toml = (value: string | number) => (typeof value === 'number' ? value : JSON.stringify(value))
    const lines = SETTINGS.filter(({ name }) => name.startsWith('log.')).map(
      ({ name, fallback }) => `${name} = ${toml(fallback)}`,
    )
    expect((await load(lines.join('\n'))).settings.filter(({ origin }) => origin === 'file')).toHaveLength(lines.length)
  })
})

describe('a setting of the file that a flag or the environment overrides', () => {
  it('may refer to a variable that is not set', async () => {
    const text = `database = "\${env:NOT_SET}"`
    expect((await load(text, {}, { database: 'postgres://localhost/a' })).options.database).toBe(
      'postgres://localhost/a',
    )
    expect((await load(text, { DATABASE_URL: 'postgres://localhost/b' })).options.database).toBe(
      'postgres://localhost/b',
    )
    expect(await mistakesOf(load(text))).toHaveLength(1)
  })
})
