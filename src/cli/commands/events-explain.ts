import { type Command, Option } from 'commander'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { printExplanation } from '../explain-format.ts'
import { toExplanationJson } from '../explain-json.ts'
import { findEvent } from '../find-event.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { IMPORT_FLAGS, IMPORT_HELP, loadRulesIfPossible } from '../observer-file.ts'

interface Options {
  readonly all?: boolean
  readonly reveal?: boolean
  readonly import?: string
}

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of an event, or its position')
    .option('--all', 'tell of observers of other types one by one')
    .option('--reveal', 'print the user id too, in JSON')
    .addOption(new Option(IMPORT_FLAGS, IMPORT_HELP))
    .addHelpText(
      'after',
      `
Asks every observer that was in force when the event happened, by the rule of that time: whether it acted, the value of
every part of its condition, what was sent and answered, what comes next. With a configuration file also what would be
sent now; secrets are masked, values of the payload are shown. Nothing is sent.`,
    )
    .action((id: string) => runCommand<Options>(command, (invocation) => explain(id, invocation)))
}

async function explain(id: string, { configuration, open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { file } = await configuration()
  const ac = await open()
  const event = await findEvent(ac, id)
  await loadRulesIfPossible(ac, file, options.import, output)
  const explanation = await ac.observers.explain(event.id)
  if (output.json) output.document(toExplanationJson(explanation, options.reveal ?? false))
  else printExplanation(explanation, { all: options.all ?? false }, output)
  return EXIT.ok
}
