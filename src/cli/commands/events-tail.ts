import { type Command, Option } from 'commander'
import type { AftercommitEvent, StartPoint } from '../../index.ts'
import { printable } from '../../printable.ts'
import { collect, toStartPoint, toTime } from '../arguments.ts'
import { formatAggregate, formatPayload, formatTime, toBrief } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'

interface Options {
  readonly on?: string[]
  readonly since?: Date
  readonly from?: StartPoint
  readonly tenant?: string
  readonly payload?: boolean
}

export function define(command: Command): void {
  command
    .addOption(
      new Option('--on <pattern...>', 'only these types, like order.* (comma or space between them)').argParser(
        collect,
      ),
    )
    .addOption(new Option('--since <time>', 'begin in the past: 2h, or a time').argParser(toTime).conflicts('from'))
    .addOption(
      new Option('--from <start>', 'begin at start, head, or after a position (default: head)').argParser(toStartPoint),
    )
    .option('--tenant <tenant>', 'only events of this tenant')
    .option('--payload', 'print payloads too')
    .addHelpText(
      'after',
      '\nPrints until interrupted, in order, each event once, across lost connections. With --json one line per event.',
    )
    .action(() => runCommand<Options>(command, tail))
}

async function tail({ open, options, output, signal }: Invocation<Options>): Promise<ExitCode> {
  const { on, tenant } = options
  const ac = await open()
  const from = options.since ?? options.from ?? 'head'
  output.talk(`Waiting for events${on === undefined ? '' : ` of ${on.join(', ')}`}. Ctrl-C ends.`)
  for await (const event of ac.log.tail({ from, on, tenant, signal })) {
    if (output.json) output.line(toBrief(event, { payload: options.payload ?? false }))
    else printEvent(event, options.payload ?? false, output)
  }
  return signal.aborted ? EXIT.interrupted : EXIT.failure
}

/** One line each: nobody knows how wide the next event will be, so the columns are only about right. */
function printEvent(event: AftercommitEvent, withPayload: boolean, { colors, data }: Output): void {
  const position = String(event.position).padStart(6)
  const type = printable(event.type).padEnd(24)
  const aggregate = printable(formatAggregate(event)).padEnd(16)
  data(
    `${colors.dim(formatTime(event.recordedAt))}  ${position}  ${colors.bold(type)}  ${aggregate}  ${colors.dim(printable(event.id))}`,
  )
  if (withPayload) data(`  ${printable(formatPayload(event))}`)
}
