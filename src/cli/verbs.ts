/** Every verb, with the one sentence that help shows. */
import type { Verb } from './program.ts'

export const verbs: readonly Verb[] = [
  {
    name: 'start',
    summary: 'run the observers of the configuration file until told to stop',
    load: () => import('./commands/start.ts'),
  },
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
    name: 'console',
    summary: 'a page to watch and steer it all, on this machine',
    load: () => import('./commands/console.ts'),
  },
  {
    name: 'receipt',
    summary: 'everything that followed one event, and what moves the rest',
    load: () => import('./commands/receipt.ts'),
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
      {
        name: 'explain',
        summary: 'why each observer acted on an event, or did not',
        load: () => import('./commands/events-explain.ts'),
      },
      {
        name: 'import',
        summary: 'append the rows of a table of events that existed before',
        load: () => import('./commands/events-import.ts'),
      },
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
    name: 'observers',
    summary: 'look at rules, check them, try them on history',
    verbs: [
      {
        name: 'list',
        summary: 'every rule, and what it did in the last 24 hours',
        load: () => import('./commands/observers-list.ts'),
      },
      {
        name: 'validate',
        summary: 'look for mistakes in a file of rules',
        load: () => import('./commands/observers-validate.ts'),
      },
      {
        name: 'test',
        summary: 'try rules on real history; sends nothing',
        load: () => import('./commands/observers-test.ts'),
      },
    ],
  },
  {
    name: 'workflows',
    summary: 'look at workflows, check code against their histories',
    verbs: [
      {
        name: 'list',
        summary: 'print instances, the one with the newest event first',
        load: () => import('./commands/workflows-list.ts'),
      },
      {
        name: 'show',
        summary: 'print one, with its events, timers and state',
        load: () => import('./commands/workflows-show.ts'),
      },
      {
        name: 'check',
        summary: 'replay stored histories through the code at hand',
        load: () => import('./commands/workflows-check.ts'),
      },
    ],
  },
  {
    name: 'timers',
    summary: 'look at what workflows wait for',
    verbs: [
      {
        name: 'list',
        summary: 'print timers that have not fired, soonest first',
        load: () => import('./commands/timers-list.ts'),
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
    name: 'deliveries',
    summary: 'look at durable work, hurry it, cancel it, pause it',
    verbs: [
      {
        name: 'list',
        summary: 'print what is not done, oldest first',
        load: () => import('./commands/deliveries-list.ts'),
      },
      {
        name: 'show',
        summary: 'print one, with its last error and its payload',
        load: () => import('./commands/deliveries-show.ts'),
      },
      {
        name: 'retry',
        summary: 'make due now what waits for its time',
        load: () => import('./commands/deliveries-retry.ts'),
      },
      {
        name: 'cancel',
        summary: 'have deliveries never done',
        load: () => import('./commands/deliveries-cancel.ts'),
      },
      {
        name: 'pause',
        summary: 'let no worker begin what has a name, or goes somewhere',
        load: () => import('./commands/deliveries-pause.ts'),
      },
      {
        name: 'resume',
        summary: 'go on with what was paused',
        load: () => import('./commands/deliveries-resume.ts'),
      },
      {
        name: 'destinations',
        summary: 'limits, circuits and pauses that all processes share',
        load: () => import('./commands/deliveries-destinations.ts'),
      },
    ],
  },
  {
    name: 'capture',
    summary: 'tables whose row changes become events',
    verbs: [
      {
        name: 'list',
        summary: 'every captured table, and lost triggers',
        load: () => import('./commands/capture-list.ts'),
      },
      {
        name: 'backfill',
        summary: 'make events of the rows that a captured table has already',
        load: () => import('./commands/capture-backfill.ts'),
      },
    ],
  },
  {
    name: 'search',
    summary: 'look into search indexes, make them anew',
    verbs: [
      { name: 'list', summary: 'every index in this database', load: () => import('./commands/search-list.ts') },
      { name: 'query', summary: 'find documents', load: () => import('./commands/search-query.ts') },
      {
        name: 'reindex',
        summary: 'make indexes anew from history, by the rules of the file',
        load: () => import('./commands/search-reindex.ts'),
      },
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
