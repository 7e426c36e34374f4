import type { Command } from 'commander'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addPageOptions, type PageOptions, toFilter } from '../letter-filter.ts'
import { plural } from '../plural.ts'

interface Options extends PageOptions {
  readonly reveal?: boolean
}

export function define(command: Command): void {
  addPageOptions(command)
    .option('--reveal', 'print user ids too')
    .addHelpText('after', '\nOne JSON document per line, newest first, with the whole event and its payload.')
    .action(() => runCommand<Options>(command, exportLetters))
}

async function exportLetters({ open, options, output, signal }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  let count = 0
  for await (const letter of ac.deadLetters.export(toFilter(options))) {
    if (signal.aborted) return EXIT.interrupted
    output.line(options.reveal ? letter : hideUser(letter))
    count++
  }
  output.talk(`Exported ${plural(count, 'letter')}.`)
  return EXIT.ok
}

function hideUser(letter: Record<string, unknown>): object {
  const event = letter.event as { readonly metadata: Record<string, unknown> }
  if (typeof event.metadata.user_id !== 'string') return letter
  return { ...letter, event: { ...event, metadata: { ...event.metadata, user_id: '[REDACTED]' } } }
}
