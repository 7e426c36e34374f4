import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import { toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { TIMER_COLUMNS, toTimerRow } from '../workflow-format.ts'

interface Options {
  readonly type?: string
  readonly id?: string
  readonly limit: number
}

export function define(command: Command): void {
  command
    .option('--type <type>', 'only of this workflow')
    .option('--id <id>', 'only of the instance with this id')
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(1_000)).default(100))
    .addHelpText(
      'after',
      `
Soonest first, by the clock of the database. A timer that is due and stays is one that no process fires: see whether its
workflow is registered in one that runs. \`held\` ones wait until their instance is resumed.`,
    )
    .action(() => runCommand<Options>(command, list))
}

async function list({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { type, id, limit } = options
  const filter = { ...(type !== undefined && { type }), ...(id !== undefined && { id }), limit }
  const found = await ac.workflows.timers(filter)
  if (output.json) output.document(found.map(toPlain))
  else if (found.length === 0) output.talk('No timers.')
  else output.table(TIMER_COLUMNS, found.map(toTimerRow))
  if (found.length === limit) output.talk('\nThere may be later ones: raise --limit.')
  return EXIT.ok
}
