/**
 * What workflows promise, as scenarios that any implementation must pass: ours on Postgres, the twin in memory, or a
 * wrapper of yours. Bound to no particular test runner: give it `describe`, `it` and `expect`.
 */
import type { DeadLetters } from '../dead-letters/index.ts'
import type { CallerTransaction } from '../postgres/index.ts'
import type { Workflows } from '../workflows/index.ts'
import { effectScenarios } from './contract-workflow-effects.ts'
import { inputScenarios } from './contract-workflow-inputs.ts'
import { pauseScenarios } from './contract-workflow-pauses.ts'
import { timerScenarios } from './contract-workflow-timers.ts'
import type { TestFramework } from './subscriptions-contract.ts'

/** Who calls: one scenario, from `create` to `stop`. Nothing is shared between scenarios. */
export interface WorkflowsUnderTest {
  readonly workflows: Omit<Workflows, 'check'>
  readonly deadLetters: DeadLetters
  transaction<T>(fn: (tx: CallerTransaction) => Promise<T>): Promise<T>
  /** Called once, when workflows are registered: effects are done and timers fire from now on. */
  start(): Promise<void>
  /** Lets a few milliseconds pass, and what is due be done. Called again and again while a scenario waits. */
  work(): Promise<void>
  stop(): Promise<void>
}

export interface WorkflowStage {
  readonly under: WorkflowsUnderTest
  readonly expect: TestFramework['expect']
  /** Looks again and again until `look` answers true. */
  until(look: () => boolean | Promise<boolean>): Promise<void>
}

/** A sentence that must hold, and how to see that it does. */
export type WorkflowScenario = readonly [title: string, play: (stage: WorkflowStage) => Promise<void>]

/** `create` gives an implementation without any instances. */
export function describeWorkflows(
  name: string,
  create: () => Promise<WorkflowsUnderTest>,
  { describe, it, expect }: TestFramework,
): void {
  const topics = { inputs: inputScenarios, effects: effectScenarios, timers: timerScenarios, pauses: pauseScenarios }
  describe(name, () => {
    for (const [topic, scenarios] of Object.entries(topics)) {
      describe(topic, () => {
        for (const [title, play] of scenarios) {
          it(title, async () => {
            const under = await create()
            try {
              await play({ under, expect, until: (look) => until(under, look) })
            } finally {
              await under.stop()
            }
          })
        }
      })
    }
  })
}

/** Ends a scenario that cannot succeed; nothing is inferred from how long anything took. */
const DEADLINE_MS = 20_000

async function until({ work }: WorkflowsUnderTest, look: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + DEADLINE_MS
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`It did not happen within ${DEADLINE_MS} ms: ${look}`)
    await work()
  }
}
