import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Column } from '../table.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      `
Lists the tables whose row changes become events. \`migrate\` puts lost triggers in place again.

Columns:
  aggregate   begins the types of the events
  each        whether triggers fire once per statement or per row
  omit        columns that are left out
  triggers    in place, or which ones are lost`,
    )
    .action(() => runCommand<object>(command, list))
}

const COLUMNS: readonly Column[] = [
  { title: 'table', min: 8 },
  { title: 'aggregate' },
  { title: 'each' },
  { title: 'truncate' },
  { title: 'omit' },
  { title: 'triggers' },
]

async function list({ open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const tables = await ac.capture.list()
  if (output.json) output.document(tables.map(toPlain))
  else if (tables.length === 0) output.talk('No table is captured.')
  else {
    output.table(
      COLUMNS,
      tables.map(({ table, aggregate, each, truncate, omit, exists, missing }) => [
        table,
        aggregate,
        each,
        truncate,
        omit.join(', ') || '–',
        exists ? missing.join(', ').replace(/^(?=.)/, 'lost: ') || 'in place' : 'the table is gone',
      ]),
    )
  }
  return tables.some(({ exists, missing }) => !exists || missing.length > 0) ? EXIT.failure : EXIT.ok
}
