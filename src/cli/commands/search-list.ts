import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Column } from '../table.ts'

export function define(command: Command): void {
  command
    .addHelpText(
      'after',
      `
Lists the indexes that search actions keep in this database. Those of another engine are that engine's to list.

Columns:
  documents   those that can be found
  position    of the newest event that wrote into it
  state       ready, or building: a reindex is under way or was killed within the last hour`,
    )
    .action(() => runCommand<object>(command, list))
}

const COLUMNS: readonly Column[] = [
  { title: 'index', min: 8 },
  { title: 'language' },
  { title: 'documents', align: 'right' },
  { title: 'position', align: 'right' },
  { title: 'written' },
  { title: 'state' },
]

async function list({ open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const found = await ac.search.indexes()
  if (output.json) output.document(found.map(toPlain))
  else if (found.length === 0) output.talk('No search indexes.')
  else {
    output.table(
      COLUMNS,
      found.map(({ name, language, documents, position, writtenAt, isBuilding }) => [
        name,
        language,
        String(documents),
        position === null ? '–' : String(position),
        writtenAt?.toISOString() ?? '–',
        isBuilding ? 'building' : 'ready',
      ]),
    )
  }
  return EXIT.ok
}
