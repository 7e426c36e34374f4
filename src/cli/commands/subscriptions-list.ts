import type { Command } from 'commander'
import { printable } from '../../printable.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import {
  readSubscriptions,
  SUBSCRIPTION_COLUMNS,
  toSubscriptionJson,
  toSubscriptionRow,
} from '../subscription-format.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      `
Columns:
  lag      positions between the checkpoint and the frontier
  behind   how long the oldest of them has waited
  owner    the process that runs it
  dead     dead letters that nobody has dealt with
  parked   events that wait behind them`,
    )
    .action(() => runCommand<object>(command, list))
}

async function list({ open, output }: Invocation<object>): Promise<ExitCode> {
  const found = await readSubscriptions(await open())
  if (output.json) output.document(found.map(toSubscriptionJson))
  else if (found.length === 0) output.talk('No subscriptions: none was started on this database yet.')
  else {
    output.table(SUBSCRIPTION_COLUMNS, found.map(toSubscriptionRow))
    const troubled = found.filter(({ reason }) => reason !== null)
    if (troubled.length > 0) output.talk('')
    for (const { id, status, reason } of troubled) output.talk(printable(`${id} is ${status}: ${reason}`))
  }
  return EXIT.ok
}
