import type { Command } from 'commander'
import { loadConfiguration } from '../config.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      '\nReports every mistake in flags, environment and file at once, with its place, and exits with 3. Observers are ' +
        'checked whole, but for the events and handlers that only the application knows.',
    )
    .action(() => runCommand<object>(command, check))
}

async function check({ options, output }: Invocation<object>): Promise<ExitCode> {
  const { file, settings } = await loadConfiguration(options, process.env, 'everything')
  const given = settings.filter(({ origin }) => origin !== 'default').length
  if (output.json) output.document({ file, mistakes: [] })
  else output.data(`${file ?? 'No configuration file'}: no mistakes; ${given} of ${settings.length} settings given.`)
  return EXIT.ok
}
