import type { Command } from 'commander'
import { AftercommitError } from '../../errors.ts'
import { toPlain } from '../../events/index.ts'
import type { DeliveryDetails, ProcessStatus } from '../../index.ts'
import { toDeliveryId } from '../delivery-filter.ts'
import { formatDue } from '../delivery-format.ts'
import { formatTime } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { printFields, printJson } from '../fields.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of a delivery', toDeliveryId)
    .action((id: bigint) => runCommand<object>(command, (invocation) => show(id, invocation)))
}

async function show(id: bigint, { open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const found = await ac.deliveries.show(id)
  if (found === undefined) {
    throw new AftercommitError(
      'UNKNOWN_DELIVERY',
      `There is no delivery ${id}: it is done, became a dead letter, was cancelled, or never was. See: aftercommit deliveries list`,
    )
  }
  // The keys of a payload are the user's.
  const { payload, ...rest } = found
  if (output.json) output.document({ ...(toPlain(rest) as object), payload })
  else {
    const { processes } = await ac.status()
    printDelivery(
      found,
      processes.find(({ process }) => process === found.process),
      output,
    )
  }
  return EXIT.ok
}

function printDelivery(one: DeliveryDetails, runBy: ProcessStatus | undefined, output: Output): void {
  const { colors, data } = output
  const time = (at: Date | null) => (at === null ? null : `${formatTime(at)} UTC`)
  data(colors.bold(`Delivery ${one.id}`))
  printFields(
    [
      ['state', one.state],
      ['kind', one.kind],
      ['name', one.name],
      ['owner', one.owner],
      ['destination', one.destination],
      ['tenant', one.tenant],
      ['key', one.key === null ? null : `${one.key}${one.ordered ? ', in order' : ''}`],
      ['unique', one.uniqueKey],
      ['priority', one.priority === 0 ? null : String(one.priority)],
      ['added', time(one.createdAt)],
      ['due', one.state === 'running' ? null : `${time(one.runAt)}, ${formatDue(one.runAt)}`],
      ['attempts', String(one.attempts)],
      ['first', time(one.firstAttemptAt)],
      ['last', time(one.lastAttemptAt)],
      ['worker', runBy === undefined ? one.process : `${runBy.host}:${runBy.pid}`],
      ['dead letter', one.letter === null ? null : `${one.letter}, redriven`],
    ],
    output,
  )
  if (one.error !== null) {
    data(`\n${colors.bold('error')}`)
    printFields(
      [
        ['name', one.error.name],
        ['code', one.error.code ?? null],
        ['message', one.error.message],
      ],
      output,
    )
  }
  printJson('payload', one.payload, output)
  if (one.state === 'scheduled' || one.state === 'retrying')
    output.talk(`\nTo have it done now: aftercommit deliveries retry ${one.id}`)
}
