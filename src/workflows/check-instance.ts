/**
 * One instance: what is stored of it goes through the code at hand, from its first event on. Where retention has removed
 * that one, from the oldest snapshot that this code uses and whose following events are there. What can be, worst first:
 *
 *   an event is missing behind one that is there   somebody removed it: a finding
 *   no snapshot helps, and it is not over          the instance cannot go on: a finding
 *   no snapshot helps, and it is over              nobody needs its state: counted, and no finding
 *   it went on while it was looked at              what is new is left for the next check
 */
import { findPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { type CheckedType, type CheckFinding, nameOfError, toFinding } from './check-report.ts'
import { type StoredSnapshot, selectObservations, selectSnapshots } from './check-statements.ts'
import { createWalk, type Walk } from './check-walk.ts'
import { replayFound } from './replay.ts'
import type { InstanceSummary, WorkflowStore } from './store.ts'
import type { Workflow } from './workflow.ts'
import { historyLost } from './workflow-error.ts'

export interface CheckParts {
  readonly database: Database
  readonly store: WorkflowStore
  /** Whether differences show values. */
  readonly values: boolean
}

export interface CheckedInstance extends Omit<CheckedType, 'type' | 'instances'> {
  readonly findings: readonly CheckFinding[]
}

export async function checkInstance(
  workflow: Workflow,
  instance: InstanceSummary,
  { database, store, values }: CheckParts,
): Promise<CheckedInstance> {
  const [snapshots, observations] = await Promise.all([
    selectSnapshots(database, instance),
    selectObservations(database, instance),
  ])
  const newest = snapshots.at(-1)
  const nothing: CheckedInstance = {
    ...{ events: 0, snapshots: 0, decisions: 0, fromSnapshot: 0, notCheckable: 0, findings: [] },
    redacted: observations.filter(({ redacted }) => redacted).length,
    outdated: !instance.completed && newest && !isUsed(workflow, newest) ? 1 : 0,
  }
  for (let base: StoredSnapshot | undefined; ; ) {
    const from = stateAt(workflow, instance, base)
    if ('finding' in from) return { ...nothing, findings: [from.finding] }
    const walk = createWalk({ workflow, instance, from, snapshots, observations, values })
    const missing = await replayInto(walk, instance, from.version, store)
    const walked = { ...nothing, ...walk.count, fromSnapshot: base ? 1 : 0, findings: walk.findings }
    if (missing === undefined) return walked
    const lost = toLost(instance, missing)
    const kept = await firstKept(instance, missing, { database, store })
    if (kept === undefined) return { ...walked, findings: [...walk.findings, lost] }
    const bases = snapshots.filter(({ version }) => version >= kept - 1)
    base = bases.find((snapshot) => isUsed(workflow, snapshot))
    if (base === undefined && instance.completed) return { ...nothing, notCheckable: 1 }
    if (base === undefined) return { ...nothing, findings: [bases[0] ? toUnused(instance, bases[0]) : lost] }
  }
}

/** The beginning of a life, or a state as this code writes it. */
function isUsed({ snapshots = {} }: Workflow, { state, stateVersion }: StoredSnapshot): boolean {
  return state === undefined || stateVersion === (snapshots.version ?? 1)
}

/** As whoever executes an input would have it. */
function stateAt(workflow: Workflow, instance: InstanceSummary, base: StoredSnapshot | undefined) {
  const place = { version: base?.version ?? 0, position: base?.position ?? null }
  const snapshot = base && { version: base.version, state: base.state === undefined ? undefined : { json: base.state } }
  try {
    return { ...place, ...replayFound(workflow, instance, undefined, { snapshot, events: [] }) }
  } catch (error) {
    const message = `The snapshot cannot be read by this code (${nameOfError(error)}), so the instance cannot go on.`
    return { finding: toFinding(instance, place, 'snapshot', message) }
  }
}

const PAGE = 100

/** Everything after a version. Answers with the version of an event that is missing. */
async function replayInto(
  walk: Walk,
  instance: InstanceSummary,
  after: number,
  store: WorkflowStore,
): Promise<number | undefined> {
  for (let from = after + 1; from <= instance.version; from += PAGE) {
    const to = Math.min(from + PAGE - 1, instance.version)
    const events = await store.history(instance, { from, to, limit: PAGE })
    for (let version = from; version <= to; version++) {
      const event = events[version - from]
      if (event?.version !== version) return version
      if (!walk.apply(event)) return undefined
    }
  }
  // A snapshot beyond what is looked at: it went on, and the end that is known is an old one.
  if (after <= instance.version) walk.end()
  return undefined
}

/** The version that retention has kept an instance from. Undefined: the missing event was removed by something else. */
async function firstKept(
  instance: InstanceSummary,
  missing: number,
  { database, store }: Pick<CheckParts, 'database' | 'store'>,
): Promise<number | undefined> {
  const [first] = await store.history(instance, { from: 1, to: instance.version, limit: 1 })
  const version = first?.version ?? instance.version + 1
  const hasRemoved = (await findPosition(database, 'start', 0n)) > 0n
  return hasRemoved && version > missing ? version : undefined
}

function toLost(instance: InstanceSummary, missing: number): CheckFinding {
  const place = { version: missing - 1, position: null }
  return toFinding(instance, place, 'event', historyLost(instance, missing).message)
}

function toUnused(instance: InstanceSummary, { version, position, stateVersion }: StoredSnapshot): CheckFinding {
  return toFinding(
    instance,
    { version, position },
    'snapshot',
    `The snapshot has \`snapshots.version\` ${stateVersion}, which this code does not use, and retention has removed events ` +
      'before it, so the instance cannot go on. Keep the version, and let `snapshots.decode` lift what older code has stored.',
  )
}
