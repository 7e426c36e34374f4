import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ConfigError, type Path, readConfiguration } from '../../src/configuration/index.ts'
import { readStamped } from '../../src/configuration/stamp.ts'
import type { ExactNumber } from '../../src/events/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'aftercommit-read-'))
afterAll(() => rmSync(folder, { recursive: true }))

function write(files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return join(folder, Object.keys(files)[0]!)
}

async function mistakesOf(files: Record<string, string>) {
  const error = await readConfiguration({ file: write(files) }).then(
    () => undefined,
    (thrown: ConfigError) => thrown,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return error!.mistakes.map(({ where, path, message }) => [
    relative(folder, where),
    path,
    message.replaceAll(`${folder}/`, ''),
  ])
}

const readText = (text: string) => readConfiguration({ text, name: 'a.toml' })

async function placeOf(text: string, path: Path, at: 'key' | 'value' = 'value', offset?: number) {
  const { locate } = await readText(text)
  return locate([{ path, at, message: 'x', offset }])[0]!
}

describe('places', () => {
  it('are known of every key and value, however it is written', async () => {
    const text = [
      'a = 1',
      'b.c = "x"',
      '[d.e]',
      'f = { g = [1, { h = 2 }] }',
      '[[i.j]]',
      'k = 1',
      '[[i.j]]',
      'k = 2',
      '[i.j.l]',
      'm = true',
    ].join('\n')
    const cases: [Path, 'key' | 'value', string][] = [
      [['a'], 'value', 'a.toml:1:5'],
      [['b', 'c'], 'key', 'a.toml:2:3'],
      [['d', 'e'], 'key', 'a.toml:3:4'],
      [['d', 'e', 'f', 'g', 1, 'h'], 'value', 'a.toml:4:21'],
      [['i', 'j', 1, 'k'], 'value', 'a.toml:8:5'],
      [['i', 'j', 1, 'l'], 'key', 'a.toml:9:6'],
      [['i', 'j', 1, 'l', 'm'], 'value', 'a.toml:10:5'],
    ]
    for (const [path, at, where] of cases) expect((await placeOf(text, path, at)).where, path.join('.')).toBe(where)
  })

  it('of something missing are those of the table that lacks it', async () => {
    expect((await placeOf('[a]\n[b.c]\nx = 1', ['b', 'c', 'missing', 'deeper'])).where).toBe('a.toml:2:4')
    expect((await placeOf('', ['nothing'])).where).toBe('a.toml:1:1')
  })

  it('reach into a string, past quotes, escapes and line breaks', async () => {
    const at = async (text: string, offset: number) => (await placeOf(text, ['c'], 'value', offset)).where
    expect(await at('c = "abc"', 0)).toBe('a.toml:1:6')
    expect(await at("c = 'abc'", 2)).toBe('a.toml:1:8')
    expect(await at(String.raw`c = "a\"\u0041\U0001F600!"`, 3)).toBe('a.toml:1:15')
    expect(await at(String.raw`c = "a\"\u0041\U0001F600!"`, 5)).toBe('a.toml:1:25')
    expect(await at('c = """\nab\ncd"""', 4)).toBe('a.toml:3:2')
    expect(await at('c = """\r\nab\r\ncd"""', 4)).toBe('a.toml:3:2')
    expect(await at('c = """a\\\n   b"""', 1)).toBe('a.toml:2:4')
  })

  it('show the line with a mark', async () => {
    expect((await placeOf('[a]\n\tb = "cde" # why', ['a', 'b'], 'value', 1)).frame).toBe(
      '    2 | \tb = "cde" # why\n      | \t      ^',
    )
  })

  it('sort mistakes by file, line and column', async () => {
    const { locate } = await readText('a = 1\nb = 2')
    const found = [['b'], ['a']].map((path) => ({ path, at: 'value' as const, message: path[0]! }))
    expect(locate(found).map(({ message }) => message)).toEqual(['a', 'b'])
  })
})

describe('values', () => {
  it('are exact, and dates are their text', async () => {
    const text = 'a = 9007199254740993\nb = 0.1000000000000000000001\nc = 1979-05-27\nd = 1_000.5\ne = 1e400'
    const { data } = await readText(text)
    expect(data).toMatchObject({ a: 9007199254740993n, c: '1979-05-27', d: 1000.5 })
    expect([data.b, data.e].map((value) => (value as ExactNumber).text)).toEqual(['0.1000000000000000000001', '1e400'])
  })

  it('keep keys named like a prototype as keys', async () => {
    const { data } = await readText('[a]\n__proto__ = 1\nconstructor = 2\n[__proto__]\npolluted = 1')
    expect(Object.keys(data)).toEqual(['a', '__proto__'])
    expect(Object.keys(data.a as object)).toEqual(['__proto__', 'constructor'])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  it('may follow a byte order mark', async () => {
    expect((await readText('\uFEFFa = 1')).data).toMatchObject({ a: 1 })
  })

  it('that JSON does not have are refused', async () => {
    expect(await mistakesOf({ 'inf.toml': 'a = { b = inf }\nc = nan' })).toMatchObject([
      ['inf.toml:1:11', 'a.b', expect.stringContaining('inf')],
      ['inf.toml:2:5', 'c', expect.stringContaining('nan')],
    ])
  })

  it('that nest too deep are refused, and quickly', async () => {
    const deep = expect.stringContaining('nests more than')
    expect(await mistakesOf({ 'list.toml': `a = ${'['.repeat(150)}${']'.repeat(150)}` })).toMatchObject([
      ['list.toml:1:1', 'a', deep],
    ])
    expect(await mistakesOf({ 'key.toml': `a${'.a'.repeat(10_000)} = 1` })).toMatchObject([['key.toml:1:1', 'a', deep]])
  })
})

describe('include', () => {
  it('makes several files one, each path relative to the file that names it', async () => {
    const file = write({
      'main.toml': 'include = ["parts/one.toml"]\n[observers.a]\non = "x"\n[providers.slack]\nurl = "s"',
      'parts/one.toml': 'include = ["two.toml"]\n[observers.b]\non = "y"\n[observers]',
      'parts/two.toml': '[observers.c]\non = "z"\n[providers.smtp]\nurl = "m"',
    })
    const { data, files, locate } = await readConfiguration({ file })
    expect(data).toMatchObject({
      observers: { a: { on: 'x' }, b: { on: 'y' }, c: { on: 'z' } },
      providers: { slack: { url: 's' }, smtp: { url: 'm' } },
    })
    expect(data.include).toBeUndefined()
    expect(files.map((name) => relative(folder, name))).toEqual(['main.toml', 'parts/one.toml', 'parts/two.toml'])
    const [mistake] = locate([{ path: ['observers', 'c', 'on'], at: 'value', message: 'x' }])
    expect(relative(folder, mistake!.where)).toBe('parts/two.toml:2:6')
  })

  it('refuses a table that two files define, and names both places', async () => {
    const found = await mistakesOf({
      'twice.toml': 'include = ["more.toml"]\n[runtime]\nrecord = "all"\n[[list]]\nx = 1',
      'more.toml': '[log]\n[runtime]\nmax_concurrency = 5\n[[list]]\nx = 2',
    })
    expect(found).toEqual([
      ['more.toml:2:2', 'runtime', 'is defined twice. It is also at twice.toml:2:2. Keep one of them.'],
      ['more.toml:4:3', 'list', 'is defined twice. It is also at twice.toml:4:3. Keep one of them.'],
    ])
  })

  it('refuses a circle, a second time, and what is not there, all at once', async () => {
    const found = await mistakesOf({
      'circle.toml': 'include = ["round.toml", "none.toml", "round.toml", "."]',
      'round.toml': 'include = ["circle.toml"]',
    })
    expect(found).toEqual([
      ['round.toml:1:12', 'include[0]', expect.stringContaining('leads back')],
      ['circle.toml:1:26', 'include[1]', expect.stringContaining('no such file')],
      ['circle.toml:1:39', 'include[2]', expect.stringContaining('second time')],
      ['circle.toml:1:53', 'include[3]', expect.stringContaining('not a file')],
    ])
    expect(await mistakesOf({ 'self.toml': 'include = ["self.toml"]' })).toHaveLength(1)
    expect(await mistakesOf({ 'text.toml': 'include = "x.toml"' })).toMatchObject([
      ['text.toml:1:11', 'include', expect.stringContaining('list')],
    ])
  })

  it('refuses ten megabytes, in one file or in several', async () => {
    const tooLarge = expect.stringContaining('larger than 4 MB')
    const filler = (megabytes: number) => `# ${'x'.repeat(megabytes * 1024 * 1024)}`
    expect(await mistakesOf({ 'large.toml': filler(10) })).toEqual([['large.toml', '(file)', tooLarge]])
    const parts = {
      'sum.toml': 'include = ["half.toml", "other.toml"]',
      'half.toml': filler(3),
      'other.toml': filler(3),
    }
    expect(await mistakesOf(parts)).toEqual([['sum.toml:1:25', 'include[1]', tooLarge]])
  })
})

describe('an include that leads out of the folder of the configuration', () => {
  const secret = 'root:$6$hash:19000:0:99999:7:::'

  it.each([
    ['by its path', '../outside-a/passwd'],
    ['by a path that comes back only in part', 'rules/../../outside-a/passwd'],
    ['as an absolute path', join(folder, 'outside-a/passwd')],
    ['as an absolute path inside the folder', join(folder, 'inside-a/rules.toml')],
    ['by a link to a file', 'link'],
    ['by a link to a folder', 'folder/passwd'],
  ])('is refused %s, and nothing of the file is shown', async (_, include) => {
    const file = write({
      'inside-a/main.toml': `include = ["${include}"]`,
      'inside-a/rules.toml': '[observers.a]',
      'outside-a/passwd': secret,
    })
    for (const [link, to] of [
      ['link', '../outside-a/passwd'],
      ['folder', '../outside-a'],
    ] as const) {
      rmSync(join(folder, 'inside-a', link), { force: true })
      symlinkSync(to, join(folder, 'inside-a', link))
    }
    const error = await readConfiguration({ file }).catch((thrown: ConfigError) => thrown)
    expect(error).toMatchObject({ code: 'BAD_CONFIG', mistakes: [{ path: 'include[0]' }] })
    expect(String(error)).toContain('folder')
    expect(String(error)).not.toContain('root:')
  })

  it('is refused by the place of the file that was opened, whatever the path led to before', async () => {
    write({ 'swapped/inside.toml': '', 'outside-c/passwd': secret })
    symlinkSync('../outside-c', join(folder, 'swapped', 'rules'))
    const asked: string[] = []
    const judged = await readStamped(join(folder, 'swapped/rules/passwd'), (opened) => asked.push(opened) < 1)
    expect(asked).toEqual([realpathSync(join(folder, 'outside-c/passwd'))])
    expect(judged).toEqual({ stamp: expect.any(String), refused: 'not allowed' })
  })

  it('is refused in an included file too, and in text, whose folder is the current one', async () => {
    const nested = {
      'inside-b/main.toml': 'include = ["rules/one.toml"]',
      'inside-b/rules/one.toml': 'include = ["../two.toml", "../../outside-b.toml"]',
      'inside-b/two.toml': '[observers.b]',
      'outside-b.toml': '[observers.c]',
    }
    expect(await mistakesOf(nested)).toEqual([
      ['inside-b/rules/one.toml:1:27', 'include[1]', expect.stringContaining('leads out of the folder')],
    ])
    const text = await readText('include = ["../outside.toml"]').catch((error: unknown) => error)
    expect(String(text)).toContain('leads out of the folder')
  })

  it('is read where links stay inside, as the mounts of Kubernetes have them', async () => {
    const file = write({ 'mount/..1/main.toml': 'include = ["rules.toml"]', 'mount/..1/rules.toml': '[observers.a]' })
    const mount = join(folder, 'mount')
    symlinkSync('..1', join(mount, '..data'))
    for (const name of ['main.toml', 'rules.toml']) symlinkSync(`..data/${name}`, join(mount, name))
    expect((await readConfiguration({ file: join(mount, 'main.toml') })).data).toEqual({ observers: { a: {} } })
    symlinkSync(file, join(folder, 'elsewhere.toml'))
    write({ 'rules.toml': '[observers.z]' })
    const linked = await readConfiguration({ file: join(folder, 'elsewhere.toml') })
    expect(linked.data).toEqual({ observers: { z: {} } })
  })
})

describe('text that is not TOML', () => {
  it('is pointed at, in every file', async () => {
    const found = await mistakesOf({ 'bad.toml': 'include = ["worse.toml"]\n', 'worse.toml': 'a = 1\n[log\n' })
    expect(found).toEqual([['worse.toml:3:1', '(TOML)', 'Unterminated table-key.']])
  })

  it('names both places of what one file defines twice', async () => {
    const also = (place: string) => expect.stringContaining(`It is also at ${place}.`)
    expect(await mistakesOf({ 't.toml': '[a]\nx = 1\n[b]\n[a]\n' })).toEqual([
      ['t.toml:4:2', '(TOML)', also('t.toml:1:2')],
    ])
    expect(await mistakesOf({ 't.toml': '[a]\nx = 1\n\nx = 2\n' })).toEqual([
      ['t.toml:4:1', '(TOML)', also('t.toml:2:1')],
    ])
    expect(await mistakesOf({ 't.toml': 'a.b = 1\n[a.b]\n' })).toEqual([['t.toml:2:4', '(TOML)', also('t.toml:1:3')]])
  })

  it('shows no line of which nobody knows whether it holds a secret', async () => {
    const shown = await readText('a = 1\nhunter2 is no TOML\n').catch((error: Error) => error.message)
    expect(shown).toContain('a.toml:2:')
    expect(shown).not.toContain('hunter2')
  })

  const count = 100_000
  it.each([
    ['nested lists', `a = ${'['.repeat(count)}${']'.repeat(count)}`, '2:205', 'nests more than 200 levels'],
    ['nested tables', `a = ${'{a='.repeat(count)}1${'}'.repeat(count)}`, '2:605', 'nests more than 200 levels'],
    ['lists that nobody closes', `a = ${'['.repeat(count)}`, '2:205', 'nests more than 200 levels'],
    ['a table name in brackets', `${'['.repeat(count)}a`, '2:201', 'nests more than 200 levels'],
    ['a long text', `a = "${'x'.repeat(count)}"`, '2:5', 'is longer than 65536 characters'],
    ['a long text of escapes', `a = "${'\\"'.repeat(count)}"`, '2:5', 'is longer than 65536 characters'],
    ['a long literal', `a = '${'x'.repeat(count)}'`, '2:5', 'is longer than 65536 characters'],
    ['a long text of many lines', `a = """${'x\n'.repeat(count)}"""`, '2:5', 'is longer than 65536 characters'],
    ['a long literal of many lines', `a = '''${"x'\n".repeat(count)}'''`, '2:5', 'is longer than 65536 characters'],
    ['a long number', `a = ${'1'.repeat(count)}`, '2:5', 'is longer than 65536 characters'],
  ])('is pointed at where the parser would run out of stack: %s', async (_, text, where, message) => {
    const error = await readText(`# "[[[" '''\n${text}\nb = 1`).catch((thrown: ConfigError) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    const { mistakes } = error as ConfigError
    expect(mistakes.map((one) => [one.where, one.message])).toEqual([
      [`a.toml:${where}`, expect.stringContaining(message)],
    ])
    expect(String(error).length).toBeLessThan(1_000)
  })

  it('is not seen in brackets that stand in texts and comments', async () => {
    const many = '['.repeat(1_000)
    const text = [
      `a = "${many}\\"${many}" # ${many}`,
      `b = '${many}'`,
      `c = """\n${many}"${many}\\""""""`,
      `d = '''${many}'''''`,
    ]
    expect((await readText(text.join('\n'))).data).toMatchObject({ b: many, d: `${many}''` })
  })

  it('is shown around the mark where its line is long', async () => {
    const line = `a = [${'1, '.repeat(5_000)}`
    const text = await readText(`${line}\nb = ]`).catch((error: Error) => error.message)
    expect(String(text).length).toBeLessThan(1_000)
  })
})
