import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { watchFiles } from '../../src/configuration/index.ts'
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

async function watching(paths: string[], options = { quietMs: 5, lookEveryMs: 600_000 }) {
  let calls = 0
  const watch = await watchFiles(paths, () => void calls++, options)
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
  const watch = await watchFiles([missing], () => void calls++, { quietMs: 10, lookEveryMs: 5_000, clock })
  onTestFinished(() => watch.stop())
  mkdirSync(join(folder, 'later'))
  put(missing, 'x')
  await eventually(async () => {
    await clock.advance(5_000)
    return calls === 1
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
