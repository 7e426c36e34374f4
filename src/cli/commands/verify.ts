import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { VerifyReport } from '../../subscriptions/index.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { createProgress } from '../progress.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      `
Walks the whole log and looks for events that were written below a frontier that readers had been told was final. That
takes positions written by hand, or a sequence that was set back. Names subscriptions whose checkpoint belongs to
another history. Exits with 1 when there is either.`,
    )
    .action(() => runCommand<object>(command, verify))
}

async function verify({ open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const progress = createProgress({ stream: process.stderr, quiet: output.quiet })
  const report = await ac.verify({ onProgress: progress.at }).finally(progress.end)
  if (output.json) output.document(toPlain(report))
  else printReport(report, output)
  return report.ok ? EXIT.ok : EXIT.failure
}

/** Late events listed for people; JSON has all that were kept. */
const MOST_SHOWN = 10

function printReport(report: VerifyReport, output: Output): void {
  const { events, holes, frontier, subscriptions, late } = report
  if (subscriptions.length > 0) {
    output.table(
      [
        { title: 'subscription', min: 12 },
        { title: 'position', align: 'right' },
        { title: 'skipped', align: 'right' },
        { title: 'dead', align: 'right' },
        { title: 'parked', align: 'right' },
      ],
      subscriptions.map(({ id, position, skipped, deadLetters, parked }) =>
        [id, position, skipped, deadLetters, parked].map(String),
      ),
    )
    output.data('')
  }
  output.data(`Walked ${plural(events, 'event')} and ${plural(holes, 'hole')} up to position ${frontier}.`)
  if (report.ok) output.data('Nothing was skipped.')
  if (late.length > 0) printLate(report, output)
  for (const { id, forked } of subscriptions) if (forked) printForked(id, output)
}

function printLate({ late }: VerifyReport, output: Output): void {
  const { colors, data } = output
  data(colors.red(`${plural(late.length, 'event')} written below a frontier that was final already:`))
  output.table(
    [
      { title: 'position', align: 'right' },
      { title: 'type', min: 12 },
      { title: 'id', min: 9 },
    ],
    late.slice(0, MOST_SHOWN).map(({ position, type, id }) => [String(position), type, id]),
    '  ',
  )
  if (late.length > MOST_SHOWN) data(`  … and ${late.length - MOST_SHOWN} more; --json lists them`)
  output.talk('\nTo handle them after all: aftercommit subscriptions seek <id> --to <the position before the first>')
}

function printForked(id: string, { colors, data }: Output): void {
  data(colors.red(`The checkpoint of ${id} belongs to another history: events below it may never have been handled.`))
  data('  Seek it back: aftercommit subscriptions seek <id> --to <the last position that both histories share>')
}
