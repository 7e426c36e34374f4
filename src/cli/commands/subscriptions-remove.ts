import type { Command } from 'commander'
import { confirm } from '../confirm.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addOperatorOptions, type OperatorOptions, toAction } from '../operator.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { findSubscription, formatOwner, type ShownSubscription, toSubscriptionJson } from '../subscription-format.ts'

export function define(command: Command): void {
  addOperatorOptions(command)
    .argument('<id>', 'the id of a subscription')
    .addHelpText(
      'after',
      `
Forgets the subscription: its checkpoint, its dead letters, what waits behind them, and which events it has processed.
The log stays. Code that still registers the id makes a new subscription of it, which begins where that code says.`,
    )
    .action((id: string) => runCommand<OperatorOptions>(command, (invocation) => remove(id, invocation)))
}

async function remove(id: string, invocation: Invocation<OperatorOptions>): Promise<ExitCode> {
  const { options, output } = invocation
  const ac = await invocation.open()
  const found = await findSubscription(ac, id)
  sayWhatIsLost(found, output)
  if (!(await confirm(invocation, `Remove ${id}? This cannot be undone.`))) {
    output.talk('Nothing was removed.')
    return EXIT.failure
  }
  await ac.subscriptions.get(id).remove(toAction(options))
  if (output.json) output.document({ removed: toSubscriptionJson(found) })
  else output.data(`Removed ${id}.`)
  return EXIT.ok
}

function sayWhatIsLost(one: ShownSubscription, output: Output): void {
  const { id, position, deadLetters, parked } = one
  const owner = formatOwner(one)
  output.talk(
    `Lost with ${id}: its checkpoint at position ${position}, ${plural(deadLetters, 'open dead letter')}, ${plural(parked, 'parked event')}.`,
  )
  if (owner !== null)
    output.warn(`It is running in ${owner}, which makes a new one of it when it restarts. Deploy without it first.`)
}
