import type { Command } from 'commander'
import { runCommand } from '../invocation.ts'
import { addFilterOptions, collectLetterIds } from '../letter-filter.ts'
import { type Marking, type MarkOptions, markLetters } from '../mark-letters.ts'
import { addWho } from '../operator.ts'

const DISCARD: Marking = {
  verb: 'discard',
  question: (letters) => `Discard ${letters}? Nobody will handle them.`,
  done: (letters) => `Discarded ${letters}: the owner goes on with what waited behind.`,
}

export function define(command: Command): void {
  addWho(addFilterOptions(command))
    .argument('[id...]', 'ids of dead letters', collectLetterIds)
    .requiredOption('--reason <text>', 'why, kept with the letter and in the audit')
    .option('--all-matching', 'every dead letter that the filters leave')
    .option('--dry-run', 'show which ones, and do nothing')
    .addHelpText('after', '\nGives them up: their events are never handled, and what waited behind them goes on.')
    .action((ids: bigint[]) => runCommand<MarkOptions>(command, (invocation) => markLetters(ids, DISCARD, invocation)))
}
