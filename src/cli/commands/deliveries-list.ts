import { type Command, Option } from 'commander'
import { AftercommitError } from '../../errors.ts'
import { toPlain } from '../../events/index.ts'
import type { Aftercommit } from '../../index.ts'
import { toCount } from '../arguments.ts'
import { addDeliveryFilter, type DeliveryFilterOptions, toDeliveryFilter, toDeliveryId } from '../delivery-filter.ts'
import { DELIVERY_COLUMNS, toDeliveryRow } from '../delivery-format.ts'
import { nearestName } from '../delivery-name.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'

interface Options extends DeliveryFilterOptions {
  readonly after?: bigint
  readonly limit: number
}

export function define(command: Command): void {
  addDeliveryFilter(command)
    .addOption(new Option('--after <id>', 'only younger ones than this: the next page').argParser(toDeliveryId))
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(1_000)).default(100))
    .addHelpText(
      'after',
      `
Oldest first. States:
  waiting     due, and not begun
  running     a worker is at it
  scheduled   due later
  retrying    begun before, to be tried again
  paused      its name or its destination is paused`,
    )
    .action(() => runCommand<Options>(command, list))
}

async function list({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { after, limit } = options
  const found = await ac.deliveries.list({ ...toDeliveryFilter(options), after, limit })
  if (output.json) output.document(found.map(toPlain))
  else if (found.length === 0) output.talk('No deliveries.')
  else output.table(DELIVERY_COLUMNS, found.map(toDeliveryRow))
  if (found.length === 0) await advise(ac, options, output)
  if (found.length === limit) output.talk(`\nThere may be younger ones: --after ${found.at(-1)!.id}`)
  return EXIT.ok
}

/** Nothing was found: perhaps because nothing is called that, or nothing goes there. */
async function advise(ac: Aftercommit, { name, destination }: Options, output: Output): Promise<void> {
  if (destination !== undefined) {
    const unknown = await ac.deliveries.findDestinations(destination).then(() => undefined, messageOf)
    if (unknown !== undefined) output.talk(unknown)
  }
  if (name === undefined) return
  const names = await ac.deliveries.names()
  if (names.some((one) => one.name === name)) return
  output.talk(`Nothing is called ${JSON.stringify(name)} here.${nearestName(name, names)}`)
}

function messageOf(error: unknown): string {
  if (error instanceof AftercommitError && error.code === 'UNKNOWN_DESTINATION') return error.message
  throw error
}
