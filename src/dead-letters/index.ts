/**
 * One model for everything that ran out of attempts: which event, for whom, why, how often, and what became of it. The stage
 * promises that a dead letter keeps its own copy of the event and that marking one never runs it: its owner does, under its
 * lease. All SQL on dead letters is here; an owner passes its event or row in the statement that writes the letter.
 *
 * Start with letter.ts, then write.ts, redrive.ts and dead-letters.ts (what people do with them).
 */
export { createDeadLetters, type DeadLetters, type LetterAction } from './dead-letters.ts'
export { discardLettersOf, resolveReported } from './end.ts'
export { type ErrorRecord, toErrorRecord } from './error-record.ts'
export { copyEvent } from './event-copy.ts'
export {
  deleteLettersOf,
  discardForReset,
  discardLettersOfRows,
  hasOpenLetter,
  hasUnplacedLetter,
  heldByLetters,
  letterCounts,
  resolveLettersOf,
  subscriptionLettersOf,
} from './fragments.ts'
export type { DeadLetter, LetterKind, LetterStatus, NewLetter } from './letter.ts'
export { freeKey, parkEvents, removeParked, selectParked, selectParkedKeys } from './parked.ts'
export {
  hasMarkedLetters,
  hasRedriven,
  markStreak,
  placeMarkedLetters,
  redriveByItself,
  redriveStreak,
  resolveLetter,
  returnLetter,
  selectMarked,
  selectMarkedOwners,
} from './redrive.ts'
export { pruneLetters } from './retention.ts'
export {
  countOpenByOwner,
  countWaitingLetters,
  type LetterCause,
  type LetterFilter,
  type WaitingLetters,
} from './statements.ts'
export { type Burial, buryDelivery, writeLetter } from './write.ts'
