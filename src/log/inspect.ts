/** Where everything stands, as data: what `aftercommit status` prints and a console shows. */
import { type Address, type Database, type SchemaState, schemaStatus, selectServerSettings } from '../postgres/index.ts'
import {
  countAbove,
  type ProcessStatus,
  selectPartitionSizes,
  selectProcesses,
  selectRunEnd,
} from './inspect-statements.ts'
import type { LogStatus } from './log.ts'
import { listPartitions } from './upkeep-statements.ts'

export interface Status {
  readonly server: ServerStatus
  readonly schema: {
    readonly name: string
    readonly state: SchemaState
    /** Version in the database; 0 when nothing is installed. */
    readonly version: number
    /** Version that this build knows. */
    readonly latest: number
    readonly pending: readonly string[]
    /** Functions, triggers and views that differ from this build. */
    readonly pendingFiles: readonly string[]
  }
  /** Null while the schema is not one that this build may read. `lag`: events that are not final yet, 10,000 at most. */
  readonly log: (LogStatus & { readonly lag: number }) | null
  readonly processes: readonly ProcessStatus[]
  readonly partitions: readonly PartitionStatus[]
}

export interface ServerStatus extends Address {
  readonly version: string
  readonly standby: boolean
  readonly role: string
}

export interface PartitionStatus {
  readonly name: string
  /** Positions from here … */
  readonly from: bigint
  /** … to below here; null for the open one. */
  readonly to: bigint | null
  readonly bytes: number
}

export interface StatusOptions {
  readonly database: Database
  readonly address: () => Promise<Address>
  readonly logStatus: () => Promise<LogStatus>
}

export async function readStatus({ database, address, logStatus }: StatusOptions): Promise<Status> {
  const { version, standby, role } = await selectServerSettings(database)
  const server = { ...(await address()), version, standby, role }
  const { state, current, latest, pending, pendingFiles } = await schemaStatus(database)
  const schema = { name: database.schemaName.name, state, version: current, latest, pending, pendingFiles }
  if (state === 'empty' || state === 'behind' || state === 'too-new') {
    return { server, schema, log: null, processes: [], partitions: [] }
  }
  const [log, processes, partitions] = await Promise.all([
    withLag(database, await logStatus()),
    selectProcesses(database),
    readPartitions(database),
  ])
  return { server, schema, log, processes, partitions }
}

/** While nobody reads, the published frontier stays behind; what follows it without a hole is final all the same. */
async function withLag(database: Database, status: LogStatus): Promise<LogStatus & { lag: number }> {
  const frontier = await selectRunEnd(database, status.frontier)
  return { ...status, frontier, lag: await countAbove(database, frontier) }
}

async function readPartitions(database: Database): Promise<PartitionStatus[]> {
  const [partitions, sizes] = await Promise.all([listPartitions(database), selectPartitionSizes(database)])
  return partitions.map(({ name, from, to }) => ({ name, from, to, bytes: sizes.get(name) ?? 0 }))
}
