import { type Command, InvalidArgumentError, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import { AftercommitError, type SeekPreview, type StartPoint, type SubscriptionHandle } from '../../index.ts'
import { toStartPoint, toTime } from '../arguments.ts'
import { confirm } from '../confirm.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { UsageError } from '../failure.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addOperatorOptions, type OperatorOptions, toAction } from '../operator.ts'
import { plural } from '../plural.ts'
import { findSubscription } from '../subscription-format.ts'

interface Options extends OperatorOptions {
  readonly to: StartPoint
  readonly dryRun?: boolean
}

export function define(command: Command): void {
  addOperatorOptions(command)
    .argument('<id>', 'the id of a subscription')
    .addOption(
      new Option('--to <place>', 'start, head, the position to go on after, 2h ago, or a time')
        .argParser(toPlace)
        .makeOptionMandatory(),
    )
    .option('--dry-run', 'say what it would repeat or skip, and do nothing')
    .addHelpText(
      'after',
      `
Shows how many events will be handled again, or skipped, and asks. Whoever runs the subscription begins again there. Dead
letters, and what waits behind them, stay as they are.`,
    )
    .action((id: string) => runCommand<Options>(command, (invocation) => seek(id, invocation)))
}

async function seek(id: string, invocation: Invocation<Options>): Promise<ExitCode> {
  const { options, output } = invocation
  const ac = await invocation.open()
  await findSubscription(ac, id)
  const handle = ac.subscriptions.get(id)
  const preview = await previewSeek(handle, options.to)
  const isDone = preview.direction === 'nowhere'
  if (isDone || options.dryRun) {
    if (output.json) output.document({ ...(toPlain(preview) as object), moved: false })
    else output.data(describe(id, preview))
    return EXIT.ok
  }
  if (!output.json) output.data(describe(id, preview))
  if (!(await confirm(invocation, `Move ${id} to position ${preview.to}?`))) {
    output.talk('Nothing was moved.')
    return EXIT.failure
  }
  const moved = await handle.seek(options.to, toAction(options))
  if (output.json) output.document({ ...(toPlain(moved) as object), moved: true })
  else output.data(`Moved ${id} to position ${moved.to}.`)
  return EXIT.ok
}

/** A place beyond the head is refused by the library; here it is a word of the command line that is wrong. */
async function previewSeek(handle: SubscriptionHandle, to: StartPoint): Promise<SeekPreview> {
  try {
    return await handle.previewSeek(to)
  } catch (error) {
    if (!(error instanceof AftercommitError) || error.code !== 'BAD_OPTION') throw error
    throw new UsageError(`${error.message} Use --to head to skip what is there now.`)
  }
}

function describe(id: string, { from, to, events, direction }: SeekPreview): string {
  if (direction === 'nowhere') return `${id} is at position ${to} already; there is nothing to do.`
  const move = `${id} goes ${direction} from position ${from} to ${to}:`
  if (events === 0) return `${move} no event of its own lies between.`
  return `${move} ${plural(events, 'event')} will ${direction === 'back' ? 'be handled again' : 'be skipped'}.`
}

function toPlace(text: string): StartPoint {
  try {
    return /^(start|head|\d+)$/.test(text) ? toStartPoint(text) : toTime(text)
  } catch {
    throw new InvalidArgumentError('Give start, head, a position, or a time like 2h (ago) or 2026-01-31T12:00:00Z.')
  }
}
