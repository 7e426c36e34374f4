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
      '\nOf a destination also ends the rest it asked for, and probes it at once if its circuit is open.',
    )
    .action((name: string | undefined) => runCommand<Options>(command, (invocation) => resume(name, invocation)))
}

async function resume(name: string | undefined, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const target = await findTarget(ac, name, options)
  const resumed = await ac.deliveries.resume(target, toAction(options))
  if (output.json) output.document({ resumed: resumed.map(toPlain) })
  else if (resumed.length > 0) output.data(printable(`Resumed ${describeTargets(resumed)}.`))
  else output.data(printable(`${describeTargets([target])} is not held back; nothing was changed.`))
  return EXIT.ok
}
