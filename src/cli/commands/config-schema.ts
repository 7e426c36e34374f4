import type { Command } from 'commander'
import type { ActionTypes } from '../../observers/index.ts'
import { fileToRead } from '../config.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { toJsonText } from '../json.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      '\nDraft 4, as TOML editors read it. Save it, and begin aftercommit.toml with: #:schema ./aftercommit.schema.json\n' +
        'Action types of [actions] packages are part of it.',
    )
    .action(() => runCommand<object>(command, schema))
}

async function schema({ options, output }: Invocation<object>): Promise<ExitCode> {
  const { checkOnlyPorts, toJsonSchema } = await import('../../observers/index.ts')
  const { actionTypes } = checkOnlyPorts({})
  const file = fileToRead(options)
  const known = file === undefined ? actionTypes : await withPackages(file, actionTypes)
  output.data(toJsonText(toJsonSchema(known), { layOut: true }))
  return EXIT.ok
}

/** A file that is wrong elsewhere still has a schema: it helps to correct it. */
async function withPackages(file: string, known: ActionTypes): Promise<ActionTypes> {
  const [{ loadActionPackages }, { ConfigError, readConfiguration }] = await Promise.all([
    import('../../observers/index.ts'),
    import('../../configuration/index.ts'),
  ])
  const read = await readConfiguration({ file })
  const { actionTypes, found } = await loadActionPackages(read, known)
  if (found.length > 0) throw new ConfigError(read.locate(found))
  return actionTypes
}
