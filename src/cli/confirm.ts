import { createInterface } from 'node:readline/promises'
import { UsageError } from './failure.ts'
import type { Invocation } from './invocation.ts'

/** Asks before something that cannot be taken back. Where nobody can answer, `--yes` must have been given. */
export async function confirm({ options, signal }: Invocation<unknown>, question: string): Promise<boolean> {
  if (options.yes) return true
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError('There is nobody to ask, so nothing was done. Pass --yes to go ahead.')
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal })
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}
