import { summarizeError } from '../runtime/index.ts'

/** The code and not the message: probes are answered in public, and a message may quote anything. */
export function errorKind(error: unknown): string {
  const { name, code } = summarizeError(error)
  return code ?? name
}
