/** What is wrong with a log, or could become so, and what mends it. Pure: facts in, findings out. */
import { type Finding, ok, quoteIdentifier, quoteLiteral, type SchemaStatus } from '../postgres/index.ts'
import { formatDuration } from '../runtime/index.ts'
import type { Holder } from './frontier-statements.ts'
import type { EpochStart, LogBook, ProcessStatus, Rights } from './inspect-statements.ts'

export interface LogFacts {
  /** Quoted, ready to stand before a dot. */
  readonly schema: string
  readonly rights: Rights
  readonly book: LogBook
  /** Null where this role may not ask. */
  readonly samePlace: boolean | null
  readonly lastEpoch: EpochStart
  readonly holders: readonly Holder[]
  readonly processes: readonly ProcessStatus[]
  /** What a process without event definitions has: it agrees with everybody. */
  readonly neutralConfigHash: string
  readonly invalidIndexes: readonly string[]
  /** Where the open partition begins, if events have come to lie in it. */
  readonly openPartitionFrom: bigint | null
}

const OLDEST_NODE = [20, 19] as const

export function nodeFinding(version: string): Finding {
  const check = 'node'
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const oldEnough = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (oldEnough) return ok(check, `Node ${version}`)
  return {
    level: 'problem',
    check,
    message: `Node ${version} is older than ${OLDEST_NODE.join('.')}, the oldest that aftercommit works with.`,
    fix: 'Install a newer Node.',
  }
}

export function rightsFindings(rights: Rights, schema: string): Finding[] {
  const check = 'rights'
  const { role, installed, isOwner, mayEmit, mayRead, seesSessions, owner } = rights
  if (!installed) {
    return [
      { level: 'problem', check: 'schema', message: `Schema ${schema} holds no log.`, fix: 'aftercommit migrate' },
    ]
  }
  if (!mayEmit && !mayRead) {
    const message = `Role ${role} may neither emit nor read.`
    return [{ level: 'problem', check, message, fix: `As ${owner}: aftercommit migrate --grant-run ${role}` }]
  }
  const can = isOwner ? 'owns the schema' : mayRead ? 'may emit and read' : 'may emit'
  const findings = [ok(check, `role ${role} ${can}`)]
  if (!mayRead) {
    const message = `Role ${role} may emit and not read, so the rest was not looked at.`
    findings.push({
      level: 'note',
      check,
      message,
      fix: `Run doctor as ${owner}, or: aftercommit migrate --grant-run ${role}`,
    })
  } else if (!seesSessions) {
    const message = `Role ${role} does not see other roles' sessions, so it cannot say what holds the frontier back.`
    findings.push({ level: 'note', check, message, fix: `aftercommit migrate --grant-monitor ${role}` })
  }
  return findings
}

export function schemaFinding(status: SchemaStatus): Finding {
  const check = 'schema'
  const versions = `version ${status.current}, and this aftercommit knows ${status.latest}`
  switch (status.state) {
    case 'current':
      return ok(check, `version ${status.current}, up to date`)
    case 'ahead':
      return {
        level: 'note',
        check,
        message: `The schema is newer: ${versions}.`,
        fix: 'Deploy the newer aftercommit here too.',
      }
    case 'too-new':
      return {
        level: 'problem',
        check,
        message: `The schema is too new for this build, which refuses to work: ${versions}.`,
        fix: 'Deploy the newer aftercommit here too.',
      }
    case 'changed':
      return {
        level: 'problem',
        check,
        message: `Migrations were edited after they were applied: ${status.changed.join(', ')}.`,
        fix: 'Install the published package again; applied migrations never change.',
      }
    default:
      return {
        level: 'problem',
        check,
        message: `Not applied: ${[...status.pending, ...status.pendingFiles.map((name) => `sql/${name}`)].join(', ')}.`,
        fix: 'aftercommit migrate',
      }
  }
}

export function logFindings(facts: LogFacts): Finding[] {
  return [
    sequenceCache(facts),
    sequencePlace(facts),
    epoch(facts),
    ...holders(facts),
    ...processes(facts),
    indexes(facts),
    openPartition(facts),
    ...retention(facts),
  ]
}

function sequenceCache({ book, schema }: LogFacts): Finding {
  const check = 'sequence cache'
  if (book.sequenceCache === 1) return ok(check, 'numbers are handed out one by one')
  return {
    level: 'problem',
    check,
    message: `The sequence has CACHE ${book.sequenceCache}: sessions hand out old numbers late, so readers stop rather than skip events.`,
    fix: `alter sequence ${schema}.positions cache 1`,
  }
}

function sequencePlace({ book, schema }: LogFacts): Finding {
  const check = 'sequence'
  if (book.sequence >= book.head && book.sequence >= book.frontier) {
    return ok(check, `at ${book.sequence}, not behind the log`)
  }
  return {
    level: 'problem',
    check,
    message: `The sequence is at ${book.sequence} and the log at ${book.head}: it was set back, and numbers would be given twice.`,
    fix: `select * from ${schema}.check_log()  -- sets it forward and begins a new epoch, as any starting reader would`,
  }
}

const A_DAY = 86_400

function epoch({ book, samePlace, lastEpoch, schema }: LogFacts): Finding {
  const check = 'epoch'
  const forked = !book.witnessKept
    ? 'Events that readers had relied on are gone'
    : samePlace === false
      ? 'The database was restored, promoted or moved'
      : undefined
  if (forked !== undefined) {
    return {
      level: 'warning',
      check,
      message: `${forked}, so history may have forked. The next reader begins a new epoch.`,
      fix: `select * from ${schema}.check_log()  -- begins it now`,
    }
  }
  const { epoch, beganAfter, reason, ageSeconds } = lastEpoch
  if (epoch === 1) return ok(check, 'one history since it was installed')
  const message = `Epoch ${epoch} began ${formatDuration(ageSeconds * 1_000)} ago after position ${beganAfter}: ${reason}.`
  if (ageSeconds > A_DAY) return ok(check, message)
  return {
    level: 'note',
    check,
    message,
    fix: `Readers that had gone beyond ${beganAfter} must start again from there.`,
  }
}

const LONG_HELD_SECONDS = 60

function holders({ holders }: LogFacts): Finding[] {
  const check = 'frontier'
  if (holders.length === 0) return [ok(check, 'nobody holds it back')]
  const old = holders.filter(({ ageSeconds }) => (ageSeconds ?? 0) > LONG_HELD_SECONDS)
  const shown = old.length > 0 ? old : holders.slice(0, 1)
  return shown.map((holder) => ({
    level: old.length > 0 ? 'problem' : 'note',
    check,
    message: `${describeHolder(holder)} ${old.length > 0 ? 'holds the frontier back: readers wait for it' : 'has taken a position and not ended yet'}.`,
    fix: unblockCommand(holder),
  }))
}

/** `Session 4711 of app (shop-web, idle in transaction, 5 min)`. */
export function describeHolder(holder: Holder): string {
  const what =
    holder.preparedGid === null ? `Session ${holder.pid}` : `Prepared transaction ${quoteLiteral(holder.preparedGid)}`
  const age = holder.ageSeconds === null ? null : formatDuration(holder.ageSeconds * 1_000)
  const details = [holder.application, holder.state, age].filter((detail) => detail !== null && detail !== '')
  return `${what}${holder.user === null ? '' : ` of ${holder.user}`}${details.length === 0 ? '' : ` (${details.join(', ')})`}`
}

function unblockCommand({ pid, preparedGid }: Holder): string {
  if (preparedGid === null) return `aftercommit unblock --pid ${pid}`
  return `aftercommit unblock --gid '${preparedGid.replaceAll("'", `'\\''`)}'`
}

/** Three heartbeats. */
const ALIVE_SECONDS = 30

function processes({ processes, neutralConfigHash }: LogFacts): Finding[] {
  const check = 'processes'
  const alive = processes.filter(({ heartbeatSecondsAgo }) => heartbeatSecondsAgo <= ALIVE_SECONDS)
  const silent = processes.length - alive.length
  const versions = [...new Set(alive.map(({ version }) => version))]
  const configured = alive.filter(({ configHash }) => configHash !== neutralConfigHash)
  const findings = [
    ok(check, `${alive.length} alive${silent > 0 ? `, ${silent} not heard of for ${ALIVE_SECONDS} s` : ''}`),
  ]
  if (versions.length > 1) {
    const message = `Different versions run side by side: ${versions.sort().join(', ')}.`
    findings.push({ level: 'warning', check, message, fix: 'Finish the deployment.' })
  }
  if (new Set(configured.map(({ configHash }) => configHash)).size > 1) {
    findings.push({
      level: 'warning',
      check,
      message: `Processes on this schema define different events: ${configured.map((one) => `${one.host}:${one.pid} ${one.configHash}`).join(', ')}.`,
      fix: 'Deploy the same definitions everywhere, or give each deployment a schema of its own.',
    })
  }
  return findings
}

function indexes({ invalidIndexes, schema }: LogFacts): Finding {
  const check = 'indexes'
  if (invalidIndexes.length === 0) return ok(check, 'all are valid')
  return {
    level: 'warning',
    check,
    message: `Not valid, so they cost every write and serve no read: ${invalidIndexes.join(', ')}.`,
    fix: invalidIndexes.map((name) => `reindex index concurrently ${schema}.${quoteIdentifier(name)}`).join('; '),
  }
}

function openPartition({ openPartitionFrom, book, schema }: LogFacts): Finding {
  const check = 'partitions'
  if (openPartitionFrom === null) return ok(check, 'there is room ahead of the head')
  return {
    level: 'warning',
    check,
    message:
      'Events have come to lie in the open partition: it grows for ever and retention cannot drop it. Appends go on.',
    fix: closeOpenPartition(schema, openPartitionFrom, book),
  }
}

/** Makes the open partition an ordinary one and opens another behind it. Appends wait while its rows are checked. */
export function closeOpenPartition(schema: string, from: bigint, { head, partitionSize }: LogBook): string {
  const to = from + ((head - from) / partitionSize + 1n) * partitionSize
  const name = `events_${from.toString().padStart(12, '0')}`
  return [
    'begin',
    `lock table ${schema}.events in access exclusive mode`,
    `alter table ${schema}.events detach partition ${schema}.events_open`,
    `alter table ${schema}.events_open rename to ${name}`,
    `alter table ${schema}.events attach partition ${schema}.${name} for values from (${from}) to (${to})`,
    `create table ${schema}.events_open partition of ${schema}.events for values from (${to}) to (maxvalue)`,
    'commit',
  ].join('; ')
}

function retention({ book, rights }: LogFacts): Finding[] {
  if (!book.retention || rights.isOwner) return []
  return [
    {
      level: 'warning',
      check: 'retention',
      message: `A retention is set, and only ${rights.owner}, the owner of the schema, may drop partitions; role ${rights.role} may not.`,
      fix: `grant ${quoteIdentifier(rights.owner ?? '')} to ${quoteIdentifier(rights.role)}`,
    },
  ]
}
