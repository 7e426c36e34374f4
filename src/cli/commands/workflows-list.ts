import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import { toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { INSTANCE_COLUMNS, toInstanceRow } from '../workflow-format.ts'

interface Options {
  readonly type?: string
  readonly limit: number
  readonly after?: string
}

export function define(command: Command): void {
  command
    .option('--type <type>', 'only this workflow')
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(1_000)).default(100))
    .option('--after <cursor>', 'the next page: what the page before ended with')
    .addHelpText(
      'after',
      `
By last event, newest first. Status:
  open        it takes inputs
  paused      somebody paused it: inputs are refused, timers and effects wait
  completed   it is over`,
    )
    .action(() => runCommand<Options>(command, list))
}

async function list({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { type, limit, after } = options
  const { items, next } = await ac.workflows.list(type === undefined ? undefined : { type }, { limit, after })
  if (output.json) output.document({ items: items.map(toPlain), next: next ?? null })
  else if (items.length === 0) output.talk('No workflows.')
  else output.table(INSTANCE_COLUMNS, items.map(toInstanceRow))
  if (next !== undefined && !output.json) output.talk(`\nThere are more: --after ${next}`)
  return EXIT.ok
}
