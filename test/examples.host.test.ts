import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { findBlocks, readPage } from './markdown.ts'

/** The numbered examples as a reader would run them: against the built package, in a process of their own. */
const root = fileURLToPath(new URL('../', import.meta.url))

beforeAll(() => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
})

describe('01-first-event', () => {
  it('reacts to its order, ends by itself, and does not react to the first order again on the second run', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-example-'))
    const first = linesOf(runExample('01-first-event', dataDir))
    const second = linesOf(runExample('01-first-event', dataDir))
    expect(first).toEqual([expect.stringMatching(/^\d+: receipt for order [0-9a-f-]{36} over 90$/)])
    expect(second).toEqual([expect.stringMatching(/^\d+: receipt for order [0-9a-f-]{36} over 90$/)])
    expect(second).not.toEqual(first)
    rmSync(dataDir, { recursive: true, force: true })
  })
})

describe('03-fulfilment', () => {
  it('brings four orders to four ends', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-example-'))
    const lines = linesOf(runExample('03-fulfilment', dataDir))
    const of = (kind: string) =>
      lines.filter((line) => line.startsWith(`${kind}: `)).map((line) => line.slice(kind.length + 2))
    expect(of('ordinary')).toEqual(['placed', 'paid', 'reserved', 'shipped'])
    expect(of('sold out')).toEqual(['placed', 'paid', 'reservation_failed', 'cancelled, refunded'])
    expect(of('far away').sort()).toEqual(
      ['placed', 'paid', 'reserved', 'shipment_failed', 'back into stock', 'cancelled, refunded'].sort(),
    )
    // A busy machine may show the reminder before the line about the order, or be so late that there is none.
    expect(of('forgotten')).toContain('placed')
    expect(of('forgotten').at(-1)).toBe('cancelled, not paid in time')
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('has tests that pass', () => expect(testExample('03-fulfilment')).toMatch(/^# pass 6$/m))
})

describe('04-approval', () => {
  it('asks, asks the next one, and takes his word', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-example-'))
    const lines = linesOf(runExample('04-approval', dataDir))
    const of = (name: string) => lines.filter((line) => line.includes(name))
    expect(of('chairs')[0]).toBe('mara, may expense chairs be paid?')
    expect(of('chairs')).toContain('jon, may expense chairs be paid?')
    expect(of('chairs').at(-1)).toBe('chairs: accepted, approved')
    expect(of('champagne').at(-1)).toBe('champagne: accepted, refused')
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('has tests that pass', () => expect(testExample('04-approval')).toMatch(/^# pass 4$/m))

  it('draws the diagram that the guide shows', () => {
    const { stdout } = spawnSync(process.execPath, ['diagram.mjs'], {
      cwd: `${root}examples/04-approval`,
      encoding: 'utf8',
    })
    const shown = findBlocks(readPage('docs/guides/workflows.md')).find(({ language }) => language === 'mermaid')
    expect(stdout.trimEnd()).toBe(shown?.code)
  })
})

describe('05-own-action', () => {
  it('rings the bell that a package brings', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-example-'))
    expect(linesOf(runExample('05-own-action', dataDir))).toEqual(['ding ding: Ada is at the door'])
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('keeps the contract of action types', () => expect(testExample('05-own-action')).toMatch(/^# pass 8$/m))
})

function testExample(name: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', '--test-reporter=tap'], {
    cwd: `${root}examples/${name}`,
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

function runExample(name: string, dataDir: string): string {
  const { DATABASE_URL: _, ...inherited } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['index.mjs'], {
    cwd: `${root}examples/${name}`,
    env: { ...inherited, NODE_ENV: 'development', AFTERCOMMIT_DATA_DIR: dataDir },
    encoding: 'utf8',
    timeout: 120_000,
  })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

function linesOf(output: string): string[] {
  return output.split('\n').filter((line) => line !== '')
}
