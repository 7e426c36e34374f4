/**
 * Rules that change all the time: replaced hundreds of times in a row, written badly, cut, deleted, and by two processes
 * that do not agree. Whatever the files hold in between, every event is judged, and the database tells by what.
 */
import { mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

function tempFile(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, name)
}

function put(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

const rule = (name: string, words = '') =>
  `[observers.${name}]\non = "lamp.lit"\n${words}\n[[observers.${name}.actions]]\ntype = "custom"\nname = "call"\nhandler = "call"\n`

/** Whichever is in force, every event is either left's or right's; two configurations would make it both, or nobody's. */
const version = (n: number) =>
  rule('left', `condition = "n % 2 == ${n % 2}"`) + rule('right', `condition = "n % 2 != ${n % 2}"`)

interface Emitting {
  readonly count: number
  stop(): Promise<void>
}

/** One event after the other, numbered from 1. */
function emitting(sql: pg.Client): Emitting {
  let count = 0
  let isOver = false
  const all = (async () => {
    while (!isOver) {
      await sql.query(`select aftercommit.emit('lamp.lit', null, null, jsonb_build_object('n', $1::int))`, [++count])
    }
  })()
  return {
    get count() {
      return count
    },
    async stop() {
      isOver = true
      await all
    },
  }
}

/** How often each event was seen, by its number; and by whom last. */
function calls(...instances: Pick<Aftercommit, 'observers'>[]) {
  const times = new Map<number, number>()
  const by = new Map<number, string>()
  for (const ac of instances) {
    ac.observers.action('call', ({ payload }, { observer }) => {
      const { n } = payload as { n: number }
      times.set(n, (times.get(n) ?? 0) + 1)
      by.set(n, observer)
    })
  }
  return { times, by }
}

it('three hundred replacements of a file, good and bad, cost no event and judge none twice', async () => {
  const { ac, sql } = await openSubscriptions()
  const file = tempFile('aftercommit.toml')
  const { times, by } = calls(ac)
  writeFileSync(file, version(0))
  await ac.observers.loadFile(file, { watch: true })
  await ac.start()
  const events = emitting(sql)
  for (let n = 1; n <= 300; n++) {
    const seen = times.size
    const text = version(n)
    if (n % 7 === 0) writeFileSync(file, '')
    if (n % 5 === 0) writeFileSync(file, text.slice(0, text.length - 3))
    if (n % 11 === 0) unlinkSync(file)
    if (n % 3 === 0) await ac.observers.reload().catch(() => {})
    put(file, text)
    if (n % 4 === 0) await ac.observers.reload()
    await eventually(() => times.size > seen, { every: 1 })
  }
  const condition = () => ac.observers.list()[0]?.condition
  await eventually(() => condition() === 'n % 2 == 0')
  const last = events.count
  await eventually(() => events.count > last + 20)
  await events.stop()
  await eventually(() => times.size === events.count)
  expect([...times].filter(([, count]) => count !== 1)).toEqual([])
  for (let n = last + 1; n <= events.count; n++) expect(by.get(n)).toBe(n % 2 === 0 ? 'left' : 'right')
  expect(await ac.deadLetters.count({})).toBe(0)
  expect(await ac.observers.status()).toMatchObject([
    { name: 'left', isInForce: true, condition: 'n % 2 == 0' },
    { name: 'right', isInForce: true, condition: 'n % 2 != 0' },
  ])
})

it('of two processes with different files the last change is in force, and no event is left out', async () => {
  const { ac, another, sql } = await openSubscriptions()
  const processes = [ac, another()]
  const files = ['first', 'second'].map((name) => tempFile(`${name}.toml`))
  const { times } = calls(...processes)
  // The same observer, of which every file says something else that changes nothing about what it sees.
  const said = (n: number) => rule('lamp', `condition = "n != -${n}"`)
  for (const [at, one] of processes.entries()) {
    writeFileSync(files[at]!, said(1_000 + at))
    await one.observers.loadFile(files[at]!)
    await one.start()
  }
  const events = emitting(sql)
  for (let n = 1; n <= 40; n++) {
    const seen = times.size
    put(files[n % 2]!, said(n))
    await processes[n % 2]!.observers.reload()
    await eventually(() => times.size > seen + 5, { every: 1 })
  }
  await events.stop()
  await eventually(() => times.size === events.count)
  await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{"n": 0}', id => 'last')`)
  await eventually(() => times.has(0))
  for (const one of processes) {
    const { observers } = await one.observers.explain('last')
    expect(observers).toMatchObject([{ observer: 'lamp', verdict: 'matched', since: 'same', condition: 'n != -40' }])
  }
  // The first two, and then one for each change: nothing was told as in force that was not.
  const { rows } = await sql.query('select max(version) as version from aftercommit.observer_versions')
  expect(rows).toEqual([{ version: 42 }])
})
