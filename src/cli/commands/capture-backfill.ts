import { type Command, Option } from 'commander'
import { toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { plural } from '../plural.ts'

interface Options {
  readonly again?: boolean
  readonly batch?: number
}

export function define(command: Command): void {
  command
    .argument('<table>', 'a captured table')
    .option('--again', 'from the first row on, although it was finished before')
    .addOption(new Option('--batch <rows>', 'rows in one transaction; 1000 by default').argParser(toCount(100_000)))
    .addHelpText(
      'after',
      `
Writes one event for each row that the table has already: order.existing for the table orders. Changes meanwhile are captured
as always, and come after the event of their row. A run that ended early goes on where it was; after a finished one there is
nothing to do.`,
    )
    .action((table: string) => runCommand<Options>(command, (invocation) => backfill(table, invocation)))
}

async function backfill(table: string, { open, options, output, signal }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { rows } = await ac.capture.backfill(table, {
    again: options.again ?? false,
    batch: options.batch,
    signal,
    onProgress: (done) => output.talk(`${plural(done, 'row')} …`),
  })
  if (output.json) output.document({ rows })
  else output.data(`${plural(rows, 'row')} became events.`)
  return EXIT.ok
}
