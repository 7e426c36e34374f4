import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { watchFiles } from '../../src/configuration/index.ts'
import { readStamped } from '../../src/configuration/stamp.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'

function folderOf(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-watch-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** At once, as far as any onlooker can tell: a write in place is a cut and a write. */
function put(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** What the files hold now. */
async function stampsOf(paths: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(paths.map(async (path) => [path, (await readStamped(path)).stamp] as const)))
}

/** Whoever is told reads the files again, unless `reads` says otherwise. Counted when it is read: the next change is one. */
async function watching(paths: string[], { reads = async () => true, lookEveryMs = 600_000 } = {}) {
  let calls = 0
  const onChange = async () => {
    if (await reads()) watch.know(await stampsOf(paths))
    calls++
  }
  const watch = watchFiles(await stampsOf(paths), onChange, { quietMs: 5, lookEveryMs })
  onTestFinished(() => watch.stop())
  return { watch, calls: () => calls }
}

it('tells of a file that was written in place', async () => {
  const folder = folderOf({ 'a.toml': '1', 'b.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml'), join(folder, 'b.toml')])
  writeFileSync(join(folder, 'b.toml'), 'two')
  await eventually(() => calls() > 0)
})

it('tells of a file that another was put in the place of, again and again', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml')])
  for (const count of [1, 2, 3]) {
    put(join(folder, 'a.toml'), `new ${count}`)
    await eventually(() => calls() === count)
  }
})

it('tells of a file that went away and came back', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml')])
  unlinkSync(join(folder, 'a.toml'))
  await eventually(() => calls() === 1)
  put(join(folder, 'a.toml'), '1')
  await eventually(() => calls() === 2)
})

it('tells of a link that leads elsewhere now, as deployments change it', async () => {
  const folder = folderOf({})
  for (const release of ['one', 'two']) {
    mkdirSync(join(folder, release))
    writeFileSync(join(folder, release, 'a.toml'), release)
  }
  symlinkSync('one', join(folder, 'current'))
  symlinkSync('current/a.toml', join(folder, 'a.toml'))
  const { calls } = await watching([join(folder, 'a.toml')])
  symlinkSync('two', join(folder, 'next'))
  renameSync(join(folder, 'next'), join(folder, 'current'))
  await eventually(() => calls() === 1)
})

it('says nothing about other files beside it', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml')])
  for (const count of [1, 2]) {
    writeFileSync(join(folder, 'other.toml'), `other ${count}`)
    put(join(folder, 'a.toml'), `new ${count}`)
    await eventually(() => calls() >= count)
  }
  expect(calls()).toBe(2)
})

it('looks from time to time where the file system does not tell', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const clock = createTestClock()
  const missing = join(folder, 'later', 'b.toml')
  let calls = 0
  const onChange = async () => void calls++
  const watch = watchFiles(await stampsOf([missing]), onChange, { quietMs: 10, lookEveryMs: 5_000, clock })
  onTestFinished(() => watch.stop())
  mkdirSync(join(folder, 'later'))
  put(missing, 'x')
  await eventually(async () => {
    await clock.advance(5_000)
    return calls > 0
  })
})

it('tells nothing after it was stopped, twice or once', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const stopped = await watching([join(folder, 'a.toml')])
  const other = await watching([join(folder, 'a.toml')])
  stopped.watch.stop()
  stopped.watch.stop()
  put(join(folder, 'a.toml'), 'two')
  await eventually(() => other.calls() === 1)
  expect(stopped.calls()).toBe(0)
})

it('tells of a change that was made after the file was read and before it was watched', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const read = await stampsOf([join(folder, 'a.toml')])
  put(join(folder, 'a.toml'), 'two')
  let calls = 0
  const onChange = async () => {
    calls++
    watch.know(await stampsOf([join(folder, 'a.toml')]))
  }
  const watch = watchFiles(read, onChange, { quietMs: 5, lookEveryMs: 600_000 })
  onTestFinished(() => watch.stop())
  await eventually(() => calls === 1)
})

it('tells of a change that is made while the one before is being read', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const file = join(folder, 'a.toml')
  const told: string[] = []
  const onChange = async () => {
    const read = await stampsOf([file])
    told.push(read.get(file)!)
    if (told.length === 1) put(file, 'three')
    watch.know(read)
  }
  const watch = watchFiles(await stampsOf([file]), onChange, { quietMs: 5, lookEveryMs: 600_000 })
  onTestFinished(() => watch.stop())
  put(file, 'two')
  await eventually(() => told.length === 2)
  expect(told[1]).toBe((await stampsOf([file])).get(file))
})

it('tells again at the next look what nobody could deal with', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const answers = [false, false, true]
  const { calls } = await watching([join(folder, 'a.toml')], { reads: async () => answers.shift()!, lookEveryMs: 20 })
  put(join(folder, 'a.toml'), 'two')
  await eventually(() => calls() === 3)
  expect(answers).toEqual([])
})

it('says nothing about a file that was only touched, or holds again what it held', async () => {
  const folder = folderOf({ 'a.toml': '1', 'b.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml'), join(folder, 'b.toml')])
  utimesSync(join(folder, 'a.toml'), new Date(), new Date())
  put(join(folder, 'a.toml'), '1')
  put(join(folder, 'b.toml'), 'two')
  await eventually(() => calls() >= 1)
  expect(calls()).toBe(1)
})

it('looks although another file of the folder is never quiet', async () => {
  const folder = folderOf({ 'a.toml': '1' })
  const { calls } = await watching([join(folder, 'a.toml')])
  put(join(folder, 'a.toml'), 'two')
  await eventually(
    () => {
      writeFileSync(join(folder, 'app.log'), String(Math.random()))
      return calls() === 1
    },
    { every: 1 },
  )
})

it('watches a folder that was taken away and made again', async () => {
  const folder = folderOf({})
  const file = join(folder, 'conf', 'a.toml')
  mkdirSync(dirname(file))
  writeFileSync(file, '1')
  const { calls } = await watching([file], { lookEveryMs: 20 })
  rmSync(dirname(file), { recursive: true })
  await eventually(() => calls() === 1)
  mkdirSync(dirname(file))
  put(file, '2')
  await eventually(() => calls() === 2)
})
