/**
 * Looks for what could go wrong with this database. It only reads, but for one notification that it sends to itself.
 * What it finds is judged in log-findings.ts and in postgres/server-findings.ts.
 */
import { type Database, type Finding, inspectServer, schemaStatus, serverFindings } from '../postgres/index.ts'
import { describeHolders } from './frontier-statements.ts'
import {
  type Rights,
  selectHasEventsFrom,
  selectInvalidIndexes,
  selectIsSamePlace,
  selectLastEpoch,
  selectLogBook,
  selectProcesses,
  selectRights,
} from './inspect-statements.ts'
import { type LogFacts, logFindings, nodeFinding, rightsFindings, schemaFinding } from './log-findings.ts'
import { listPartitions } from './upkeep-statements.ts'

export interface DoctorOptions {
  readonly database: Database
  /** The hash of a process without event definitions. */
  readonly neutralConfigHash: string
  /** What other stages find; asked where the schema can be read. */
  readonly more: () => Promise<Finding[]>
}

export async function diagnose({ database, neutralConfigHash, more }: DoctorOptions): Promise<Finding[]> {
  const { name } = database.schemaName
  const findings = [nodeFinding(process.versions.node), ...serverFindings(await inspectServer(database))]
  const rights = await selectRights(database, name)
  findings.push(...rightsFindings(rights, name))
  if (!rights.installed || !rights.mayRead) return findings
  const schema = await schemaStatus(database)
  findings.push(schemaFinding(schema))
  const readable = schema.state === 'current' || schema.state === 'ahead' || schema.state === 'changed'
  if (!readable) return findings
  return [...findings, ...logFindings(await readFacts(database, rights, neutralConfigHash)), ...(await more())]
}

async function readFacts(database: Database, rights: Rights, neutralConfigHash: string): Promise<LogFacts> {
  const [book, samePlace, lastEpoch, holders, processes, invalidIndexes, openPartitionFrom] = await Promise.all([
    selectLogBook(database),
    // It asks for the identity of the server, which not every role may know.
    selectIsSamePlace(database).catch(() => null),
    selectLastEpoch(database),
    describeHolders(database),
    selectProcesses(database),
    selectInvalidIndexes(database, database.schemaName.name),
    findFilledOpenPartition(database),
  ])
  const { schema } = database
  return {
    schema,
    rights,
    book,
    samePlace,
    lastEpoch,
    holders,
    processes,
    neutralConfigHash,
    invalidIndexes,
    openPartitionFrom,
  }
}

async function findFilledOpenPartition(database: Database): Promise<bigint | null> {
  const open = (await listPartitions(database)).find(({ to }) => to === null)
  return open !== undefined && (await selectHasEventsFrom(database, open.from)) ? open.from : null
}
