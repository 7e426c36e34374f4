import { type Command, Option } from 'commander'
import { toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { addPageOptions, type PageOptions, toFilter } from '../letter-filter.ts'
import { LETTER_COLUMNS, toBriefLetter, toLetterRow } from '../letter-format.ts'
import { adviseOwner } from '../letter-owner.ts'

interface Options extends PageOptions {
  readonly limit: number
}

export function define(command: Command): void {
  addPageOptions(command)
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(1_000)).default(100))
    .addHelpText(
      'after',
      `
Newest first. Columns:
  attempts   how many there were, and how long ago the last one was
  waiting    events of the same key that wait behind it`,
    )
    .action(() => runCommand<Options>(command, list))
}

async function list({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const letters = await ac.deadLetters.list({ ...toFilter(options), limit: options.limit })
  if (output.json) output.document(letters.map(toBriefLetter))
  else if (letters.length === 0) output.talk('No dead letters.')
  else output.table(LETTER_COLUMNS, letters.map(toLetterRow))
  if (letters.length === 0) await adviseOwner(ac, options, output)
  if (letters.length === options.limit) output.talk(`\nThere may be older ones: --before ${letters.at(-1)!.id}`)
  return EXIT.ok
}
