import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { countTests, slowestFiles } from '../../scripts/test-report.mjs'

const file = (name: string, seconds: number, ...statuses: string[]) => ({
  name: fileURLToPath(new URL(`../../${name}`, import.meta.url)),
  status: statuses.length === 0 || statuses.includes('failed') ? 'failed' : 'passed',
  startTime: 1_000,
  endTime: 1_000 + seconds * 1_000,
  assertionResults: statuses.map((status) => ({ status })),
})

const REPORT = {
  numPassedTests: 3,
  numFailedTests: 1,
  numPendingTests: 2,
  numTodoTests: 1,
  testResults: [
    file('test/a.test.ts', 2, 'passed', 'failed'),
    file('test/b.test.ts', 12.5, 'passed', 'passed', 'skipped'),
    file('test/broken.test.ts', 0),
  ],
}

test('a test file that breaks before its first test counts as one failure', () => {
  expect(countTests(REPORT)).toEqual({ passed: 3, failed: 2, skipped: 3 })
})

test('the slowest test files are named by their path in the repository, longest first', () => {
  expect(slowestFiles(REPORT, 2)).toEqual([
    { file: 'test/b.test.ts', seconds: 12.5, tests: 3 },
    { file: 'test/a.test.ts', seconds: 2, tests: 2 },
  ])
})
