import type { Command } from 'commander'
import { toEventJson } from '../../events/index.ts'
import type { AftercommitEvent, EventTrace } from '../../index.ts'
import { printable } from '../../printable.ts'
import { formatAggregate, formatTime, toBrief } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { printFields, printJson } from '../fields.ts'
import { findEvent } from '../find-event.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'

interface Options {
  readonly trace?: boolean
  readonly reveal?: boolean
}

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of an event, or its position')
    .option('--trace', 'print what led to it and what it led to')
    .option('--reveal', 'print the user id too')
    .action((id: string) => runCommand<Options>(command, (invocation) => show(id, invocation)))
}

async function show(id: string, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const event = await findEvent(ac, id)
  const full = toEventJson(event, { reveal: options.reveal ?? false })
  const trace = options.trace ? await ac.log.trace(event.id) : undefined
  if (output.json) {
    const relatives = trace && {
      ancestors: trace.ancestors.map((one) => toBrief(one)),
      descendants: trace.descendants.map((one) => toBrief(one)),
      complete: trace.complete,
    }
    output.document({ ...full, ...relatives })
    return EXIT.ok
  }
  printEvent(event, full, output)
  if (trace) printTrace(trace, output)
  return EXIT.ok
}

function printEvent(event: AftercommitEvent, full: Record<string, unknown>, output: Output): void {
  const { correlationId, causationId, traceparent, schemaVersion } = event.metadata
  const metadata = full.metadata as Record<string, unknown>
  output.data(output.colors.bold(printable(event.type)))
  printFields(
    [
      ['id', event.id],
      ['position', String(event.position)],
      ['aggregate', event.aggregateType === null ? null : formatAggregate(event)],
      ['version', event.version === null ? null : String(event.version)],
      ['tenant', event.tenant],
      ['occurred', `${formatTime(event.occurredAt)} UTC`],
      ['recorded', `${formatTime(event.recordedAt)} UTC`],
      ['correlation', correlationId],
      ['causation', causationId],
      ['user', metadata.user_id === undefined ? null : String(metadata.user_id)],
      ['trace', traceparent],
      ['schema', schemaVersion === 1 ? null : `version ${schemaVersion}`],
    ],
    output,
  )
  for (const part of ['payload', 'changes', 'previous'] as const) {
    if (full[part] !== null) printJson(part, full[part], output)
  }
}

function printTrace({ event, ancestors, descendants, complete }: EventTrace, { colors, data }: Output): void {
  data(`\n${colors.bold('trace')}`)
  const depths = new Map<string, number>()
  for (const one of [...ancestors, event, ...descendants]) {
    const depth = (depths.get(one.metadata.causationId ?? '') ?? -1) + 1
    depths.set(one.id, depth)
    const text = `${printable(one.type)} ${printable(formatAggregate(one))}`
    const isThis = one.id === event.id
    data(
      `  ${'  '.repeat(depth)}${isThis ? colors.bold(`${text}  ◀ this one`) : `${text}  ${colors.dim(printable(one.id))}`}`,
    )
  }
  if (!complete) data('  … its correlation has more than 10,000 events after it; the rest was not searched')
}
