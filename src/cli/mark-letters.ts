/** What `dlq redrive` and `dlq discard` have in common: find out which letters, show them, ask, mark, and say what was done. */
import type { DeadLetter, LetterFilter } from '../dead-letters/index.ts'
import type { Aftercommit } from '../index.ts'
import { confirm } from './confirm.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import type { Invocation } from './invocation.ts'
import { type FilterOptions, isFiltered, toFilter } from './letter-filter.ts'
import { LETTER_COLUMNS, toLetterRow } from './letter-format.ts'
import { adviseOwner, warnOfIdleOwners } from './letter-owner.ts'
import { type OperatorOptions, toAction } from './operator.ts'
import type { Output } from './output.ts'
import { plural } from './plural.ts'

export interface MarkOptions extends FilterOptions, OperatorOptions {
  readonly allMatching?: boolean
  readonly dryRun?: boolean
}

export interface Marking {
  readonly verb: 'redrive' | 'discard'
  readonly question: (letters: string) => string
  readonly done: (letters: string) => string
}

/** Letters shown before the question. */
const SAMPLE = 5

export async function markLetters(
  ids: readonly bigint[],
  { verb, question, done }: Marking,
  invocation: Invocation<MarkOptions>,
): Promise<ExitCode> {
  const { options, output } = invocation
  const chosen = chooseLetters(ids, options)
  const ac = await invocation.open()
  const matched = await ac.deadLetters.count({ ...chosen, status: 'dead' })
  const sample = await ac.deadLetters.list({ ...chosen, status: 'dead', limit: SAMPLE })
  await sayWhatIsLeftOut(ac, ids, matched, output)
  const newest = sample[0]
  if (newest === undefined) {
    if (output.json) output.document({ matched: 0, marked: 0 })
    else output.data('No dead letter matches; nothing was done.')
    await adviseOwner(ac, options, output)
    return ids.length > 0 ? EXIT.failure : EXIT.ok
  }
  if (!output.json) showSample(sample, matched, output)
  if (options.dryRun) {
    if (output.json) output.document({ matched, marked: 0 })
    else output.data(`\nWould ${verb} ${plural(matched, 'dead letter')}; nothing was done.`)
    return EXIT.ok
  }
  if (!(await confirm(invocation, question(plural(matched, 'dead letter'))))) {
    output.talk('Nothing was done.')
    return EXIT.failure
  }
  // What died while somebody thought about the question was not part of it.
  const seen = ids.length > 0 ? chosen : { ...chosen, before: newest.id + 1n }
  const marked = await ac.deadLetters[verb](seen, toAction(options))
  if (output.json) output.document({ matched, marked })
  else output.data(done(plural(marked, 'dead letter')))
  if (marked > 0) await warnOfIdleOwners(ac, sample, output)
  if (marked < Math.max(matched, ids.length)) return marked === 0 ? EXIT.failure : EXIT.partial
  return EXIT.ok
}

function chooseLetters(ids: readonly bigint[], options: MarkOptions): LetterFilter {
  const filtered = isFiltered(options)
  if (ids.length > 0 && (options.allMatching || filtered)) {
    throw new UsageError('Name letters by id, or choose them with --all-matching and filters; not both.')
  }
  if (ids.length > 0) return { ids }
  if (options.allMatching) return toFilter(options)
  throw new UsageError(
    filtered
      ? 'Filters alone change nothing, so nothing was done. Add --all-matching to mean every dead letter that matches.'
      : 'No dead letter was named, so nothing was done. Give ids, or --all-matching with filters.',
  )
}

/** Ids that do not name a dead letter, each with the reason. */
async function sayWhatIsLeftOut(
  ac: Aftercommit,
  ids: readonly bigint[],
  matched: number,
  output: Output,
): Promise<void> {
  if (matched >= ids.length) return
  for (const id of ids) {
    const letter = await ac.deadLetters.show(id)
    if (letter === undefined) output.warn(`There is no dead letter ${id}.`)
    else if (letter.status !== 'dead') output.warn(`Letter ${id} is ${letter.status}, so it is left alone.`)
  }
}

function showSample(sample: readonly DeadLetter[], matched: number, output: Output): void {
  output.table(LETTER_COLUMNS, sample.map(toLetterRow))
  if (matched > sample.length) output.data(`… and ${matched - sample.length} more`)
}
