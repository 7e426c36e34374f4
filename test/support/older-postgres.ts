/**
 * Older majors of PostgreSQL. A test that asks for one never runs on another version instead: where npm has no binaries
 * for the platform, the test is skipped with a word; elsewhere their absence is a failure that says how to get them.
 */
import { TestRunner } from 'vitest'
import { findOlderPostgres, hasOlderMajorsFromNpm, howToGetPostgres } from '../../scripts/system-postgres.mjs'

/** The folder with the binaries of an older major. */
export function olderPostgres(major: number): string {
  return findOlderPostgres(major) ?? withoutPostgres(major)
}

/** Ends a test that needs a major which is not there: skipped where npm does not have it, failed elsewhere. */
export function withoutPostgres(major: number): never {
  const missing = `PostgreSQL ${major} is not installed; to get it: ${howToGetPostgres(major)}`
  if (!hasOlderMajorsFromNpm) TestRunner.getCurrentTest()?.context.skip(missing)
  throw new Error(missing)
}
