/**
 * Replays what is stored through the code at hand: can every event be read, does the state say the same about the end as
 * the instance does, are snapshots what a replay gives, and would inputs that were recorded be decided the same way.
 * Reads only; says how much of each it looked at.
 */
import { type CheckParts, checkInstance } from './check-instance.ts'
import type { CheckedType, CheckFinding, CheckReport } from './check-report.ts'
import { selectInstancesAfter } from './inspect-statements.ts'
import type { Workflow } from './workflow.ts'

export interface CheckOptions {
  /** At most so many instances of each type, in the order of their ids; all unless told. */
  readonly limit?: number | undefined
  /** Findings have the values that differ, which come from payloads; only their paths unless told. */
  readonly values?: boolean | undefined
  readonly onProgress?: ((checked: number) => void) | undefined
}

const PAGE = 100
/** More findings than anybody reads. */
const MOST_FINDINGS = 1_000

export async function checkWorkflows(
  workflows: readonly Workflow[],
  { limit = Number.POSITIVE_INFINITY, values = false, onProgress }: CheckOptions,
  parts: Omit<CheckParts, 'values'>,
): Promise<CheckReport> {
  const findings: CheckFinding[] = []
  const types: CheckedType[] = []
  let checked = 0
  for (const workflow of workflows) {
    let count: CheckedType = { type: workflow.type, instances: 0, ...NOTHING }
    for (let after: string | undefined; count.instances < limit; ) {
      const size = Math.min(PAGE, limit - count.instances)
      const page = await selectInstancesAfter(parts.database, workflow.type, after, size)
      for (const instance of page) {
        const { findings: found, ...seen } = await checkInstance(workflow, instance, { ...parts, values })
        count = { ...count, ...add(count, seen), instances: count.instances + 1 }
        findings.push(...found.slice(0, MOST_FINDINGS - findings.length))
        onProgress?.(++checked)
      }
      if (page.length < PAGE) break
      after = page.at(-1)!.id
    }
    types.push(count)
  }
  return { types, findings }
}

type Counted = Omit<CheckedType, 'type' | 'instances'>

const NOTHING: Counted = {
  events: 0,
  snapshots: 0,
  decisions: 0,
  redacted: 0,
  fromSnapshot: 0,
  notCheckable: 0,
  outdated: 0,
}

function add(one: Counted, other: Counted): Counted {
  return {
    events: one.events + other.events,
    snapshots: one.snapshots + other.snapshots,
    decisions: one.decisions + other.decisions,
    redacted: one.redacted + other.redacted,
    fromSnapshot: one.fromSnapshot + other.fromSnapshot,
    notCheckable: one.notCheckable + other.notCheckable,
    outdated: one.outdated + other.outdated,
  }
}
