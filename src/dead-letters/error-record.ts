/** What is kept of an error: name, code and message, without secrets. Stacks and Postgres details only when asked for. */
import { summarizeError } from '../runtime/index.ts'

export interface ErrorRecord {
  readonly name: string
  readonly code?: string
  readonly message: string
  readonly stack?: string
}

const LONGEST_MESSAGE = 2_000

export function toErrorRecord(error: unknown, { storeStacks = false } = {}): ErrorRecord {
  const { name, code, message, stack } = summarizeError(error, { stack: storeStacks })
  return {
    name: clean(name),
    ...(code === undefined ? {} : { code: clean(code) }),
    message: clean(message),
    ...(stack === undefined ? {} : { stack: clean(stack) }),
  }
}

/** Whatever an error says must be storable: it may quote a server that answered with binary rubbish. */
function clean(text: string): string {
  return text
    .slice(0, LONGEST_MESSAGE)
    .replaceAll('\u0000', '\ufffd')
    .replace(/\p{Surrogate}/gu, '\ufffd')
}
