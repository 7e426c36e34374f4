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
