import { type Command, Option } from 'commander'
import type { SearchHit } from '../../index.ts'
import { toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'
import type { Column } from '../table.ts'

interface Options {
  readonly limit: number
  readonly offset?: number
  readonly language?: string
  readonly tenant?: string
}

export function define(command: Command): void {
  command
    .argument('<index>')
    .argument('<text...>', 'words, "phrases", -not, or; the last word may be unfinished')
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(1_000)).default(20))
    .addOption(new Option('--offset <number>', 'pass over so many of the best').argParser(toCount(1_000_000)))
    .option('--language <name>', 'how the text becomes words; that of the index unless told')
    .option('--tenant <tenant>', 'only documents of this tenant')
    .addHelpText(
      'after',
      `
Best first. Shows what documents hold: for the person who asks, not for a log. Exits with 1 when nothing is found.`,
    )
    .action((index: string, words: string[]) =>
      runCommand<Options>(command, (invocation) => query(index, words.join(' '), invocation)),
    )
}

async function query(index: string, text: string, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { limit, offset, language, tenant } = options
  const { hits } = await ac.search.query(index, text, { limit, offset, language, tenant, highlight: true })
  // Not made snake_case: the keys of a document are the user's.
  if (output.json) output.document({ hits })
  else if (hits.length === 0) output.talk('Nothing found.')
  else print(hits, output)
  return hits.length > 0 ? EXIT.ok : EXIT.failure
}

const COLUMNS: readonly Column[] = [
  { title: 'id', min: 8 },
  { title: 'score', align: 'right' },
  { title: 'found', min: 20 },
]

function print(hits: readonly SearchHit[], output: Output): void {
  const hasTenants = hits.some(({ tenant }) => tenant !== null)
  output.table(
    hasTenants ? [{ title: 'tenant', min: 6 }, ...COLUMNS] : COLUMNS,
    hits.map(({ id, tenant, score, highlight }) => [
      ...(hasTenants ? [tenant ?? '–'] : []),
      id,
      score.toFixed(3),
      toText(highlight ?? ''),
    ]),
  )
}

/** A terminal is no page: the same text without marks and entities, on one line. */
function toText(highlight: string): string {
  return highlight
    .replace(/<\/?mark>/g, '')
    .replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => CHARACTERS[entity]!)
    .replace(/\s+/g, ' ')
}

const CHARACTERS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}
