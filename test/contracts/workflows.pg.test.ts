import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { describeWorkflows, type WorkflowsUnderTest } from '../../src/testing/index.ts'
import { testDatabase } from '../support/database.ts'

for (const major of [18, 14] as const) {
  describeWorkflows(`workflows on Postgres ${major}`, () => underTest(major), { describe, it, expect })
}

async function underTest(major: 18 | 14): Promise<WorkflowsUnderTest> {
  const { url } = await testDatabase({ major, migrated: true })
  const ac = createAftercommit({ database: url })
  return {
    workflows: ac.workflows,
    deadLetters: ac.deadLetters,
    transaction: (fn) => ac.transaction(fn),
    start: async () => void (await ac.start()),
    work: () => sleep(10),
    stop: () => ac.stop(),
  }
}
