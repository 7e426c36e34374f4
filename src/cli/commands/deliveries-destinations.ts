import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import { printable } from '../../printable.ts'
import { DESTINATION_COLUMNS, toDestinationRow } from '../destination-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      `
A destination is a type of action and where it goes, such as 'webhook https://erp.example.com'; what a workflow calls it;
or 'observer <name>' where an observer has limits of its own.

Columns:
  state      well, or what holds it back: paused; open, after failures in a row; half-open, a probe is next or under way;
             resting, since it asked to be left alone
  next       when something is sent there again
  failures   in a row
  limits     how many at once, and how many a second with which burst, over all processes`,
    )
    .action(() => runCommand<object>(command, destinations))
}

async function destinations({ open, output }: Invocation<object>): Promise<ExitCode> {
  const found = await (await open()).deliveries.destinations()
  if (output.json) output.document(found.map(toPlain))
  else if (found.length === 0)
    output.talk('No destinations: no observer names one, and none has a limit, trouble, or anything to receive.')
  else {
    output.table(DESTINATION_COLUMNS, found.map(toDestinationRow))
    const paused = found.filter((one) => one.paused)
    if (paused.length > 0) output.talk('')
    for (const { destination, who, reason } of paused)
      output.talk(printable(`${destination} was paused by ${who}${reason === null ? '' : `: ${reason}`}`))
  }
  return EXIT.ok
}
