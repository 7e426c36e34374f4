import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
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
// *.host.test.ts plays whole processes, kills servers and needs the machine more or less for itself.
const needs = ['test/**/*.pg.test.ts', 'test/**/*.host.test.ts', 'test/guarantees/**']

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'fast',
          sequence: { groupOrder: 0 },
          include: ['test/**/*.test.ts'],
          exclude: needs,
          execArgv: STRICT,
          // Not for what takes long: for a machine that stands still.
          testTimeout: 30_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'postgres',
          execArgv: STRICT,
          sequence: { groupOrder: 1 },
          include: ['test/**/*.pg.test.ts'],
          exclude: ['test/guarantees/**'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
        },
      },
      {
        ...shared,
        test: {
          name: 'host',
          execArgv: STRICT,
          sequence: { groupOrder: 2 },
          include: ['test/**/*.host.test.ts'],
          exclude: ['test/guarantees/**'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        ...shared,
        test: {
          name: 'guarantees',
          execArgv: STRICT,
          sequence: { groupOrder: 3 },
          include: ['test/guarantees/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          // They mostly wait: for a killed process, a restarted server, a lease. Each has a database of its own.
          maxWorkers: 3,
        },
      },
    ],
  },
})
