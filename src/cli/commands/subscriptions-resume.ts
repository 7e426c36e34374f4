import type { Command } from 'commander'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addOperatorOptions, type OperatorOptions, toAction } from '../operator.ts'
import { plural } from '../plural.ts'
import { findSubscription, toSubscriptionJson } from '../subscription-format.ts'

export function define(command: Command): void {
  addOperatorOptions(command)
    .argument('<id>', 'the id of a subscription')
    .addHelpText('after', '\nAlso wakes a subscription that is stopped or failing. It goes on from its checkpoint.')
    .action((id: string) => runCommand<OperatorOptions>(command, (invocation) => resume(id, invocation)))
}

async function resume(id: string, { open, options, output }: Invocation<OperatorOptions>): Promise<ExitCode> {
  const ac = await open()
  const wasActive = (await findSubscription(ac, id)).status === 'active'
  if (!wasActive) await ac.subscriptions.get(id).resume(toAction(options))
  const now = await findSubscription(ac, id)
  if (output.json) output.document(toSubscriptionJson(now))
  else if (wasActive) output.data(`${id} is active already; nothing was changed.`)
  else {
    const lag = now.lag === 0n ? '' : `, ${plural(now.lag, 'position')} behind`
    output.data(`Resumed ${id} at position ${now.position}${lag}.`)
  }
  return EXIT.ok
}
