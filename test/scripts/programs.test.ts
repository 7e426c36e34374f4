import { expect, test, vi } from 'vitest'
import { findProgram, howToGet, isCI, programs } from '../../scripts/programs.mjs'
import { olderPostgres } from '../support/older-postgres.ts'
import { hasProgram } from '../support/programs.ts'

test.each([
  ['true', true],
  ['1', true],
  ['TRUE', true],
  ['false', false],
  ['0', false],
  ['', false],
  [undefined, false],
])('CI=%s means %s wherever the suite asks', (CI, expected) => {
  expect(isCI({ CI })).toBe(expected)
})

test('each program that a test may drive names the Debian package that has it', () => {
  for (const { name, debian } of programs) expect(howToGet(name)).toContain(`apt-get install ${debian}`)
})

test('a program that scripts/programs.mjs does not list is refused by name', () => {
  expect(() => findProgram('no-such-program')).toThrow(/no-such-program .* scripts\/programs\.mjs/)
})

test('a missing program is a failure in CI and skips its tests aloud elsewhere', () => {
  vi.stubEnv('PATH', '')
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  try {
    vi.stubEnv('CI', '1')
    expect(() => hasProgram('curl', 'this')).toThrow(/curl is not installed .*apt-get install curl/)
    vi.stubEnv('CI', 'false')
    expect(hasProgram('curl', 'an answer to curl')).toBe(false)
    expect(warn.mock.calls.join()).toContain('an answer to curl is NOT tested')
  } finally {
    vi.unstubAllEnvs()
    warn.mockRestore()
  }
})

test('a PostgreSQL major that is not installed is refused with the way to get it, and no other one is taken', () => {
  expect(() => olderPostgres(13)).toThrow(/PostgreSQL 13 is not installed; to get it: (npm ci|brew|apt-get)/)
})
