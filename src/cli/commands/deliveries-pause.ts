import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import { printable } from '../../printable.ts'
import { addTarget, describeTargets, findTarget, type TargetOptions } from '../delivery-name.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addOperatorOptions, type OperatorOptions, toAction } from '../operator.ts'

interface Options extends TargetOptions, OperatorOptions {}

export function define(command: Command): void {
  addOperatorOptions(addTarget(command))
    .addHelpText(
      'after',
      `
Returns when no worker anywhere begins another, and fails after 10 seconds if some worker has not confirmed. What is under
way goes on to its end. Holds for every process until it is resumed.

A destination is called as 'aftercommit deliveries destinations' lists it, such as 'webhook https://erp.example.com'. An
origin alone, https://erp.example.com, means every destination there.`,
    )
    .action((name: string | undefined) => runCommand<Options>(command, (invocation) => pause(name, invocation)))
}

async function pause(name: string | undefined, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const target = await findTarget(ac, name, options)
  const targets = await ac.deliveries.pause(target, toAction(options))
  const { running, paused } = await ac.deliveries.count(target)
  const until = targets.length === 1 ? 'it is' : 'they are'
  if (output.json) output.document({ paused: targets.map(toPlain), waiting: paused, running })
  else output.data(printable(`Paused ${describeTargets(targets)}: ${paused} wait until ${until} resumed.`))
  if (running > 0)
    output.warn(`${running} under way are still coming to their end. They are the last: no other begins.`)
  return EXIT.ok
}
