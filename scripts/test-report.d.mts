interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly startTime: number
    readonly endTime: number
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}
export function countTests(report: Report): { passed: number; failed: number; skipped: number }
export function slowestFiles(report: Report, count: number): { file: string; seconds: number; tests: number }[]
