/**
 * The tests of observers in processes that refuse to make code from text. Only there: what turns TypeScript into
 * JavaScript for them evaluates the specifiers of imports. Templates have a test like this of their own.
 */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/observers/**/*.test.ts', 'test/testing/observers.test.ts'],
    exclude: ['**/*.pg.test.ts', '**/*.host.test.ts', 'test/observers/templates/**'],
    execArgv: ['--disallow-code-generation-from-strings'],
    env: { AFTERCOMMIT_TEST_NO_CODE: 'yes' },
  },
})
