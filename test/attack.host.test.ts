/** `npm run attack` in its quick form: every known attack is held off, and one that breaks through is told. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Report {
  readonly attacks: readonly { readonly name: string; readonly verdict: string; readonly what?: string }[]
  readonly broken: number
}

function attack(...args: string[]): { code: number | null; report: Report } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/attack.mjs', '--json', '--quick', ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  if (!stdout.startsWith('{')) throw new Error(`no report, but: ${stdout}\n${stderr}`)
  return { code: status, report: JSON.parse(stdout) as Report }
}

it('holds off every known attack', () => {
  const { code, report } = attack()
  expect(report.attacks.filter(({ verdict }) => verdict === 'broken')).toEqual([])
  expect(report.attacks.length).toBeGreaterThan(0)
  expect(code).toBe(0)
})

it('tells of an attack that broke through and of one that could not be played, and exits with 1', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ac-attacks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const attacks = {
    breaks: `export const run = ({ hold }) => hold(false, 'the door was open')`,
    fails: `export const run = async () => { throw new Error('no way in') }`,
    holds: `export const run = async ({ sql, hold }) => hold((await sql('select 1 as one'))[0].one === 1, 'no database')`,
  }
  for (const [name, run] of Object.entries(attacks)) {
    writeFileSync(join(folder, `${name}.mjs`), `export const title = 'It ${name}.'\n${run}\n`)
  }
  const { code, report } = attack('--folder', folder)
  expect(code).toBe(1)
  expect(report.broken).toBe(2)
  expect(report.attacks.map(({ name, verdict }) => [name, verdict])).toEqual([
    ['breaks', 'broken'],
    ['fails', 'broken'],
    ['holds', 'held'],
  ])
  expect(report.attacks[0]?.what).toBe('the door was open')
  expect(report.attacks[1]?.what).toContain('no way in')
})
