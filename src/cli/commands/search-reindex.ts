import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { ReindexReport } from '../../index.ts'
import { printable } from '../../printable.ts'
import { toTime } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { IMPORT_FLAGS, IMPORT_HELP, loadRules, requireFile } from '../observer-file.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { createProgress, describeBar } from '../progress.ts'
import type { Column } from '../table.ts'

interface Options {
  readonly since?: Date
  readonly import?: string
}

export function define(command: Command): void {
  command
    .argument('[index...]', 'indexes to make anew; all that the rules write to unless told')
    .addOption(
      new Option('--since <time>', 'only events recorded since: 7d, or a time; older documents stay').argParser(toTime),
    )
    .addOption(new Option(IMPORT_FLAGS, IMPORT_HELP))
    .addHelpText(
      'after',
      `
Walks history and asks the rules of the file, conditions too, what each event says about documents. In Postgres a new
generation is built beside the one in use, which stays so until the new one is whole: to end this in the middle changes
nothing, and it can be begun again. Events that come meanwhile are written to both. Other engines are written in place,
where a newer position wins; documents that no rule writes any more stay there.

Exits with 5 when it was done but for events that no document could be made of.`,
    )
    .action((indexes: string[]) => runCommand<Options>(command, (invocation) => reindex(indexes, invocation)))
}

async function reindex(indexes: readonly string[], invocation: Invocation<Options>): Promise<ExitCode> {
  const { configuration, open, options, output, signal } = invocation
  const file = requireFile((await configuration()).file)
  const ac = await open()
  await loadRules(ac, file, options.import)
  const progress = createProgress({ stream: process.stderr, quiet: output.quiet, describe: describeBar })
  const report = await ac.search
    .reindex({
      indexes: indexes.length === 0 ? undefined : indexes,
      since: options.since,
      onProgress: progress.at,
      signal,
    })
    .finally(progress.end)
  if (output.json) output.document(toPlain(report))
  else print(report, output)
  return report.ok ? EXIT.ok : EXIT.partial
}

const COLUMNS: readonly Column[] = [
  { title: 'index', min: 8 },
  { title: 'outcome' },
  { title: 'upserts', align: 'right' },
  { title: 'deletes', align: 'right' },
  { title: 'carried', align: 'right' },
]

function print({ events, indexes, failures, problems }: ReindexReport, output: Output): void {
  if (indexes.length > 0) {
    output.table(
      COLUMNS,
      indexes.map(({ index, outcome, upserts, deletes, carried }) =>
        [index, outcome, upserts, deletes, carried].map(String),
      ),
    )
  }
  output.talk(`\nWalked ${plural(events, 'event')}.`)
  if (failures === 0) return
  output.data(output.colors.red(`\n${plural(failures, 'document')} could not be written:`))
  for (const { eventId, observer, code, message } of problems) {
    output.data(printable(`  ${eventId} ${observer ?? ''} ${code ?? ''}: ${message}`))
  }
  if (failures > problems.length) output.data(`  … and ${failures - problems.length} more`)
}
