import { type Command, Option } from 'commander'
import { type Receipt, toReceiptJson } from '../../receipt/index.ts'
import { toDuration } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { findEvent } from '../find-event.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { plural } from '../plural.ts'
import { printReceipt } from '../receipt-format.ts'

interface Options {
  readonly all?: boolean
  readonly reveal?: boolean
  readonly settled?: string
}

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of an event, or its position')
    .option('--all', 'list observers of other types, too')
    .option('--reveal', 'print the user of the event')
    .addOption(
      new Option('--settled <time>', 'wait up to this long until nothing is open, also of what it caused').argParser(
        toDurationText,
      ),
    )
    .addHelpText(
      'after',
      `
Prints everything that followed one event: subscriptions, observers with the values that decided, attempts, effects and
timers, dead letters, what waits, why, and the command that moves it. All of it comes from the database, so every process
prints the same.

With --settled the exit code is 1 when something is still open.`,
    )
    .action((id: string) => runCommand<Options>(command, (invocation) => show(id, invocation)))
}

async function show(id: string, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { settled: timeout, all = false, reveal = false } = options
  const ac = await open()
  const { id: eventId } = await findEvent(ac, id)
  const receipt = await ac.receipt(eventId)
  if (timeout === undefined) {
    print(receipt)
    return EXIT.ok
  }
  const { settled, open: stillOpen, events } = await receipt.settled({ timeout })
  if (settled) {
    print(await ac.receipt(eventId))
    output.talk(`\nSettled: ${plural(events, 'event')} and everything that followed.`)
    return EXIT.ok
  }
  for (const one of stillOpen) print(one)
  output.warn(`\nNot settled within ${timeout}.`)
  return EXIT.failure

  function print(one: Receipt): void {
    if (output.json) output.line(toReceiptJson(one, { reveal }))
    else printReceipt(one, { all }, output)
  }
}

function toDurationText(text: string): string {
  toDuration(text)
  return text
}
