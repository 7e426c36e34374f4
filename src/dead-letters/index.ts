/**
 * One model for everything that ran out of tries: which event, for whom, why, how often, and what became of it. The stage
 * promises that a letter keeps its own copy of the event and that marking one never runs it: its owner does, under its
 * lease. Writing a letter belongs to whoever passes the event, in the same statement (subscriptions/).
 *
 * Start with letter.ts, then dead-letters.ts (what people do with them).
 */
export { createDeadLetters, type DeadLetters, type LetterAction } from './dead-letters.ts'
export { type ErrorRecord, toErrorRecord } from './error-record.ts'
export type { DeadLetter, LetterKind, LetterStatus, NewLetter } from './letter.ts'
export { pruneLetters } from './retention.ts'
export { copyEvent, eventOfCopy, type LetterFilter, redriveByItself } from './statements.ts'
