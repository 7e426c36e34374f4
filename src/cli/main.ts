#!/usr/bin/env node
/**
 * The command `aftercommit`. Only commander and the file of the verb that was asked for are loaded, so that `--help`
 * answers at once and a verb pays for nothing but itself.
 */
import { CommanderError } from 'commander'
import { EXIT } from './exit-codes.ts'
import { createProgram } from './program.ts'
import { verbs } from './verbs.ts'

// A reader that has seen enough (`aftercommit events list | head -1`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure),
)

try {
  const argv = process.argv.slice(2)
  const program = await createProgram(verbs, argv)
  await program.parseAsync(argv, { from: 'user' })
} catch (error) {
  // commander has said what was wrong; help and version end this way too, with 0.
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
}
