import type { Command } from 'commander'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { toJsonText } from '../json.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      '\nDraft 4, as TOML editors read it. Save it, and begin aftercommit.toml with: #:schema ./aftercommit.schema.json',
    )
    .action(() => runCommand<object>(command, schema))
}

async function schema({ output }: Invocation<object>): Promise<ExitCode> {
  const { checkOnlyPorts, toJsonSchema } = await import('../../observers/index.ts')
  output.data(toJsonText(toJsonSchema(checkOnlyPorts({}).actionTypes), { layOut: true }))
  return EXIT.ok
}
