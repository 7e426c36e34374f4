import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { SpreadSequencer } from './test/support/sequencer.ts'
import { STRICT } from './test/support/strict.ts'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const shared = {
  resolve: {
    alias: {
      aftercommit: path('./src/index.ts'),
      'aftercommit-embedded': path('./embedded/src/index.ts'),
      // The file that Node takes. Vite would take index.mjs, and graphql-ws refuses a schema of another copy.
      graphql: path('./node_modules/graphql/index.js'),
    },
  },
}

// The suffix of a test says what must be running: *.test.ts is pure, *.pg.test.ts needs Postgres,
// *.host.test.ts plays whole processes and kills servers of its own.
const needs = ['test/**/*.pg.test.ts', 'test/**/*.host.test.ts', 'test/guarantees/**']

// Every project runs side by side with the others. Many tests wait, for a killed process, a restarted server or a lease,
// so there are more workers than cores; the servers of the suite bound how many.
const maxWorkers = Math.min(availableParallelism() + 2, 12)

export default defineConfig({
  test: {
    maxWorkers,
    sequence: { sequencer: SpreadSequencer },
    projects: [
      {
        ...shared,
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: needs,
          execArgv: STRICT,
          // Not for what takes long: for a machine that stands still.
          testTimeout: 60_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'postgres',
          execArgv: STRICT,
          include: ['test/**/*.pg.test.ts'],
          exclude: ['test/guarantees/**'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'host',
          execArgv: STRICT,
          include: ['test/**/*.host.test.ts'],
          exclude: ['test/guarantees/**'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'guarantees',
          execArgv: STRICT,
          include: ['test/guarantees/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
