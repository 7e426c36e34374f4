import type { Command } from 'commander'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addOperatorOptions, type OperatorOptions, toAction } from '../operator.ts'
import { findSubscription, formatOwner, toSubscriptionJson } from '../subscription-format.ts'

export function define(command: Command): void {
  addOperatorOptions(command)
    .argument('<id>', 'the id of a subscription')
    .addHelpText(
      'after',
      '\nReturns when no handler is at work any more, or after 20 seconds. Holds for every process until it is resumed.',
    )
    .action((id: string) => runCommand<OperatorOptions>(command, (invocation) => pause(id, invocation)))
}

async function pause(id: string, { open, options, output }: Invocation<OperatorOptions>): Promise<ExitCode> {
  const ac = await open()
  const wasPaused = (await findSubscription(ac, id)).status === 'paused'
  if (!wasPaused) await ac.subscriptions.get(id).pause(toAction(options))
  const now = await findSubscription(ac, id)
  if (output.json) output.document(toSubscriptionJson(now))
  else
    output.data(
      wasPaused ? `${id} is paused already; nothing was changed.` : `Paused ${id} at position ${now.position}.`,
    )
  if (now.owner !== null)
    output.warn(`A handler is still at work in ${formatOwner(now)}. It is the last: no other begins.`)
  return EXIT.ok
}
