/** A file that is watched: what is in it is in force, whatever happens while it is loaded. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'

function tempFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'aftercommit.toml')
}

const rule = (name: string, on = 'lamp.lit') =>
  `[observers.${name}]\non = "${on}"\n[[observers.${name}.actions]]\ntype = "custom"\nhandler = "call"\n`

/** In one step, as deployments and good editors do. */
function put(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** A started instance that watches the file, and what its observers were called with. */
async function watching(file: string, text: string) {
  const { url, sql, emit } = await openSubscriptions()
  const { logger, lines } = collectingLogger()
  const ac = instance({ database: url, logger })
  const seen: string[] = []
  ac.observers.action('call', (event, { observer }) => void seen.push(`${observer} ${event.id}`))
  writeFileSync(file, text)
  await ac.observers.loadFile(file, { watch: true })
  await ac.start()
  const names = () => ac.observers.list().map(({ name }) => name)
  return { ac, url, sql, emit, seen, names, lines }
}

test('a change of the file while it is being put in force is not missed', async () => {
  const { ac, sql, url } = await openSubscriptions()
  const file = tempFile()
  ac.observers.action('call', () => {})
  writeFileSync(file, rule('one'))
  await ac.start()
  const other = await connect(url)
  await other.query('begin; lock table aftercommit.destinations in access exclusive mode')
  const loading = ac.observers.loadFile(file, { watch: true })
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await eventually(async () => (await sql.query(waits)).rowCount! > 0)
  put(file, rule('two'))
  await other.query('commit')
  await loading
  await eventually(() => ac.observers.list()[0]?.name === 'two')
})

test('a reload under way when the instance is stopped leaves no watch behind', async () => {
  const file = tempFile()
  const { ac, lines } = await watching(file, rule('one'))
  const reloading = ac.observers.reload()
  await ac.stop()
  await reloading
  const before = lines.length
  const witness = await watching(file, `${rule('one')}# changed\n`)
  put(file, rule('two'))
  await eventually(() => witness.names().includes('two'))
  expect(lines.slice(before)).toEqual([])
})

test('a second mistake within a minute is told as the first was', async () => {
  const file = tempFile()
  const { lines } = await watching(file, rule('one'))
  const told = () => lines.filter((line) => line.includes('configuration not reloaded')).length
  put(file, rule('two').replace('on =', 'no ='))
  await eventually(() => told() === 1)
  put(file, rule('two').replace('custom', 'costum'))
  await eventually(() => told() === 2)
})

test('a file with a mistake changes nothing, and its correction is in force', async () => {
  const file = tempFile()
  const { ac, emit, seen, names, lines } = await watching(file, rule('one'))
  put(file, rule('two').replace('on =', 'no ='))
  await eventually(() => lines.some((line) => line.includes('configuration not reloaded')))
  expect(names()).toEqual(['one'])
  await emit('a')
  await eventually(() => seen.length === 1)
  put(file, rule('two'))
  await eventually(() => names()[0] === 'two')
  expect(await ac.observers.status()).toMatchObject([{ name: 'two', isInForce: true }])
})

test('a file that is included and not there yet is waited for', async () => {
  const file = tempFile()
  const { names, lines } = await watching(file, rule('one'))
  put(file, `include = ["more/two.toml"]\n${rule('one')}`)
  await eventually(() => lines.some((line) => line.includes('configuration not reloaded')))
  const included = join(dirname(file), 'more', 'two.toml')
  mkdirSync(dirname(included))
  put(included, rule('two'))
  await eventually(() => names().length === 2)
  put(included, rule('three'))
  await eventually(() => names().includes('three'))
  expect(names()).toEqual(['one', 'three'])
})

test('a file that is deleted leaves what is in force, and counts again when it is back', async () => {
  const file = tempFile()
  const { emit, seen, names, lines } = await watching(file, rule('one'))
  unlinkSync(file)
  await eventually(() => lines.some((line) => line.includes('configuration not reloaded')))
  await emit('a')
  await eventually(() => seen.length === 1)
  put(file, rule('two'))
  await eventually(() => names()[0] === 'two')
})

test('a file that is cut to nothing leaves what is in force, however often it is read; a comment is meant', async () => {
  const file = tempFile()
  const included = join(dirname(file), 'more.toml')
  writeFileSync(included, rule('two'))
  const { ac, names } = await watching(file, `include = ["more.toml"]\n${rule('one')}`)
  for (const cut of [included, file]) {
    writeFileSync(cut, '')
    for (let n = 0; n < 2; n++) await expect(ac.observers.reload()).rejects.toThrow('is empty, and was not')
    expect(names()).toEqual(['one', 'two'])
    if (cut === included) put(included, rule('two'))
  }
  put(file, '# no rules')
  await eventually(() => names().length === 0)
})

test('a link of a link that is turned to another release is followed', async () => {
  const file = tempFile()
  const folder = dirname(file)
  for (const release of ['one', 'two']) {
    mkdirSync(join(folder, release))
    writeFileSync(join(folder, release, 'rules.toml'), rule(release))
  }
  symlinkSync('one', join(folder, 'current'))
  symlinkSync('current/rules.toml', join(folder, 'linked.toml'))
  const { names } = await watching(file, 'include = ["linked.toml"]\n')
  expect(names()).toEqual(['one'])
  symlinkSync('two', join(folder, 'next'))
  renameSync(join(folder, 'next'), join(folder, 'current'))
  await eventually(() => names()[0] === 'two')
})

test('a change that only the database refused is put in force when it does not any more', async () => {
  const file = tempFile()
  const { emit, seen, sql, names, lines } = await watching(file, rule('one'))
  await sql.query('alter table aftercommit.observer_versions rename to away')
  put(file, rule('two'))
  await eventually(() => lines.some((line) => line.includes('configuration not reloaded')))
  expect(names()).toEqual(['one'])
  await sql.query('alter table aftercommit.away rename to observer_versions')
  await eventually(() => names()[0] === 'two')
  await emit('a')
  await eventually(() => seen.length === 1)
  expect(seen).toEqual(['two a'])
})

test('another file takes the place of the first, which is not watched any more', async () => {
  const file = tempFile()
  const second = join(dirname(file), 'second.toml')
  const { ac, names, lines } = await watching(file, rule('one'))
  writeFileSync(second, rule('two'))
  await ac.observers.loadFile(second, { watch: true })
  put(file, rule('never'))
  put(second, rule('three'))
  await eventually(() => names()[0] === 'three')
  put(second, rule('four'))
  await eventually(() => names()[0] === 'four')
  expect(lines.filter((line) => line.includes('configuration reloaded'))).toHaveLength(2)
})
