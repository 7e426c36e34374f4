import { AftercommitError, type ErrorCode } from '../errors.ts'

export type JsonErrorCode = Extract<ErrorCode, 'BAD_JSON' | 'PAYLOAD_TOO_LARGE' | 'PAYLOAD_TOO_DEEP'>

/** Something that cannot go through JSON and Postgres unchanged. It names the place and never quotes the value. */
export class JsonError extends AftercommitError {
  declare readonly code: JsonErrorCode
  /** Where it is, such as `payload.items[3].name`. */
  readonly path: string
  /** What is wrong there. */
  readonly reason: string

  constructor(code: JsonErrorCode, path: string, reason: string, advice: string) {
    super(code, `${path} ${reason}. ${advice}`)
    this.path = path
    this.reason = reason
  }
}

export type PathStep = string | number

/** `payload.items[3]["odd key"]`. Keys that are not plain words are quoted, escaped and cut. */
export function formatPath(root: string, steps: readonly PathStep[]): string {
  const shown = steps.slice(0, 20).map(formatStep).join('')
  return root + shown + (steps.length > 20 ? '…' : '')
}

function formatStep(step: PathStep): string {
  if (typeof step === 'number') return `[${step}]`
  if (/^[A-Za-z_$][\w$]{0,59}$/.test(step)) return `.${step}`
  const short = step.length > 40 ? `${step.slice(0, 40)}…` : step
  return `[${JSON.stringify(short)}]`
}
