/** Every verb, with the one sentence that help shows. */
import type { Verb } from './program.ts'

export const verbs: readonly Verb[] = [
  {
    name: 'migrate',
    summary: 'bring the schema up to date, and give roles their rights',
    load: () => import('./commands/migrate.ts'),
  },
  {
    name: 'status',
    summary: 'where the log stands, who holds it back, who is running',
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'doctor',
    summary: 'find what could go wrong, and how to mend it',
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'unblock',
    summary: 'end the transaction that holds the frontier back',
    load: () => import('./commands/unblock.ts'),
  },
  {
    name: 'events',
    summary: 'emit, follow and look up events',
    verbs: [
      { name: 'emit', summary: 'emit one event', load: () => import('./commands/events-emit.ts') },
      { name: 'tail', summary: 'print events as they become final', load: () => import('./commands/events-tail.ts') },
      { name: 'list', summary: 'print the newest events', load: () => import('./commands/events-list.ts') },
      { name: 'show', summary: 'print one event, with its payload', load: () => import('./commands/events-show.ts') },
    ],
  },
  {
    name: 'subscriptions',
    summary: 'look at subscriptions, pause them, move them',
    verbs: [
      {
        name: 'list',
        summary: 'where every subscription stands, and who runs it',
        load: () => import('./commands/subscriptions-list.ts'),
      },
      {
        name: 'show',
        summary: 'everything about one',
        load: () => import('./commands/subscriptions-show.ts'),
      },
      {
        name: 'pause',
        summary: 'let no handler begin, in any process',
        load: () => import('./commands/subscriptions-pause.ts'),
      },
      {
        name: 'resume',
        summary: 'go on from the checkpoint',
        load: () => import('./commands/subscriptions-resume.ts'),
      },
      {
        name: 'seek',
        summary: 'move the checkpoint, to handle events again or to skip them',
        load: () => import('./commands/subscriptions-seek.ts'),
      },
      {
        name: 'remove',
        summary: 'forget a subscription, with its checkpoint and dead letters',
        load: () => import('./commands/subscriptions-remove.ts'),
      },
    ],
  },
  {
    name: 'dlq',
    summary: 'look at dead letters, try them again, give them up',
    verbs: [
      { name: 'list', summary: 'print the newest dead letters', load: () => import('./commands/dlq-list.ts') },
      {
        name: 'show',
        summary: 'print one, with its error and its event',
        load: () => import('./commands/dlq-show.ts'),
      },
      {
        name: 'redrive',
        summary: 'have dead letters run again, and what waits behind them',
        load: () => import('./commands/dlq-redrive.ts'),
      },
      { name: 'discard', summary: 'give dead letters up', load: () => import('./commands/dlq-discard.ts') },
      { name: 'export', summary: 'print dead letters as JSON lines', load: () => import('./commands/dlq-export.ts') },
    ],
  },
  {
    name: 'verify',
    summary: 'walk the log, and find what a subscription has skipped',
    load: () => import('./commands/verify.ts'),
  },
  {
    name: 'config',
    summary: 'look at the configuration',
    verbs: [
      {
        name: 'show',
        summary: 'every setting and where it comes from',
        load: () => import('./commands/config-show.ts'),
      },
      { name: 'check', summary: 'look for mistakes', load: () => import('./commands/config-check.ts') },
      {
        name: 'schema',
        summary: 'print the JSON Schema of the file',
        load: () => import('./commands/config-schema.ts'),
      },
    ],
  },
]
