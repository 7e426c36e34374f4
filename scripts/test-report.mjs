/** Reads the JSON report of vitest: counts for the last line of `npm test`, and the files that took longest. */
import { relative } from 'node:path'
import { root } from './steps.mjs'

/** `failed` includes files that broke before their first test, which have no failed test in the report. */
export function countTests(report) {
  const broken = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  }
}

/** Files by the time from their first test to the end of their last, longest first. */
export function slowestFiles(report, count) {
  return report.testResults
    .map(({ name, startTime, endTime, assertionResults }) => ({
      file: relative(root, name),
      seconds: (endTime - startTime) / 1000,
      tests: assertionResults.length,
    }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, count)
}
