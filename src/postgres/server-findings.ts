/** What is wrong with a server, or could become so, and the statement that mends it. Pure: facts in, findings out. */
import { formatDuration } from '../runtime/index.ts'
import { quoteIdentifier, quoteLiteral } from './identifiers.ts'
import type { ServerFacts } from './inspect.ts'

/**
 * - `ok`: looked at, and well · `note`: worth knowing
 * - `warning`: it works, and a promise is weaker than it could be · `problem`: it does not work now
 */
export type FindingLevel = 'ok' | 'note' | 'warning' | 'problem'

export interface Finding {
  readonly level: FindingLevel
  /** The name of the check: stable, for scripts. */
  readonly check: string
  readonly message: string
  /** The command or SQL that mends it; null where nothing needs mending. */
  readonly fix: string | null
}

export function ok(check: string, message: string): Finding {
  return { level: 'ok', check, message, fix: null }
}

export function serverFindings(facts: ServerFacts): Finding[] {
  return [
    serverVersion(facts),
    ...notificationFix(facts),
    standby(facts),
    path(facts),
    ...notifications(facts),
    notificationQueue(facts),
    synchronousCommit(facts),
    crashSafety(facts),
    idleTimeout(facts),
    ...vanishedClients(facts),
    clocks(facts),
    ...preparedTransactions(facts),
    ...slots(facts),
  ]
}

const OLDEST_MAJOR = 14

function serverVersion({ versionNumber, version }: ServerFacts): Finding {
  const check = 'server version'
  if (versionNumber >= OLDEST_MAJOR * 10_000) return ok(check, `PostgreSQL ${version}`)
  return {
    level: 'problem',
    check,
    message: `PostgreSQL ${version} is older than ${OLDEST_MAJOR}, the oldest that aftercommit works with.`,
    fix: 'Upgrade the server, or point aftercommit at another one.',
  }
}

/** Releases in which a listener can no longer be kept from hearing by an old entry in the notification queue. */
const FIXED_MINORS: ReadonlyMap<number, number> = new Map([
  [14, 21],
  [15, 16],
  [16, 12],
  [17, 8],
  [18, 2],
])

function notificationFix({ versionNumber, version }: ServerFacts): Finding[] {
  const major = Math.floor(versionNumber / 10_000)
  const fixed = FIXED_MINORS.get(major)
  if (fixed === undefined || versionNumber % 10_000 >= fixed) return []
  return [
    {
      level: 'note',
      check: 'server release',
      message: `PostgreSQL ${version} lacks a fix to LISTEN/NOTIFY: a listener can stop hearing, and readers then poll.`,
      fix: `Upgrade to ${major}.${fixed} or newer.`,
    },
  ]
}

function standby({ standby }: ServerFacts): Finding {
  const check = 'primary'
  if (!standby) return ok(check, 'the server accepts writes')
  return {
    level: 'problem',
    check,
    message: 'This server is a standby: nothing can be emitted, and its locks do not show who appends on the primary.',
    fix: 'Point DATABASE_URL at the primary.',
  }
}

/** A pooler through which nothing is heard takes the session away, whether or not it was caught in the act. */
function takesSessions({ path, hearsNotifications }: ServerFacts): boolean {
  return path === 'transaction pooler' || (path === 'pooled' && hearsNotifications === false)
}

function path(facts: ServerFacts): Finding {
  const check = 'pooler'
  if (facts.path === 'direct') return ok(check, 'no pooler in the way of LISTEN')
  if (!takesSessions(facts)) return ok(check, 'a pooler is in the way of LISTEN, and it keeps sessions')
  return {
    level: 'warning',
    check,
    message:
      'LISTEN would go through a pooler in transaction mode, which takes the session away; readers poll instead.',
    fix: 'Set AFTERCOMMIT_DIRECT_DATABASE_URL (option `directDatabase`) to an address past the pooler.',
  }
}

function notifications(facts: ServerFacts): Finding[] {
  const check = 'notifications'
  if (facts.hearsNotifications === null || takesSessions(facts)) return []
  if (facts.hearsNotifications) return [ok(check, 'a notification was sent and heard')]
  return [
    {
      level: 'warning',
      check,
      message: 'A notification sent through `database` was not heard within 5 s; readers poll instead.',
      fix: 'Make `directDatabase` lead to the same database, past any pooler.',
    },
  ]
}

function notificationQueue({ queueUsage }: ServerFacts): Finding {
  const check = 'notification queue'
  const percent = `${Math.round(queueUsage * 100)} % full`
  if (queueUsage < 0.1) return ok(check, percent)
  return {
    level: queueUsage < 0.5 ? 'note' : 'warning',
    check,
    message: `The notification queue of the server is ${percent}; above 50 % nobody rings and readers poll.`,
    fix: `End the listening session with the oldest transaction: select pid, application_name, xact_start from pg_stat_activity where xact_start is not null order by xact_start`,
  }
}

function synchronousCommit({ synchronousCommit, database }: ServerFacts): Finding {
  const check = 'synchronous_commit'
  if (synchronousCommit !== 'off') return ok(check, synchronousCommit)
  return {
    level: 'warning',
    check,
    message: 'synchronous_commit is off: a crash of the server can take back an event that was already acted on.',
    fix: `alter database ${quoteIdentifier(database)} set synchronous_commit = on`,
  }
}

function crashSafety({ fsync, fullPageWrites }: ServerFacts): Finding {
  const check = 'crash safety'
  const off = [...(fsync ? [] : ['fsync']), ...(fullPageWrites ? [] : ['full_page_writes'])]
  if (off.length === 0) return ok(check, 'fsync and full_page_writes are on')
  return {
    level: 'warning',
    check,
    message: `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a crash can destroy the database. Fine for tests only.`,
    fix: `${off.map((setting) => `alter system set ${setting} = on`).join('; ')}; select pg_reload_conf()`,
  }
}

function idleTimeout({ idleInTransactionTimeoutMs, role }: ServerFacts): Finding {
  const check = 'idle transactions'
  if (idleInTransactionTimeoutMs > 0) {
    return ok(check, `ended after ${formatDuration(idleInTransactionTimeoutMs)}`)
  }
  return {
    level: 'note',
    check,
    message:
      'idle_in_transaction_session_timeout is not set: a transaction left open after an emit holds readers back.',
    fix: `alter role ${quoteIdentifier(role)} set idle_in_transaction_session_timeout = '60s'`,
  }
}

const MOST_VANISHED_SECONDS = 300

function vanishedClients({ vanishedSeconds }: ServerFacts): Finding[] {
  const check = 'tcp_keepalives'
  if (vanishedSeconds === null) return []
  const span = formatDuration(vanishedSeconds * 1_000)
  if (vanishedSeconds <= MOST_VANISHED_SECONDS) return [ok(check, `a vanished client is noticed after ${span}`)]
  return [
    {
      level: 'note',
      check,
      message:
        `The server notices a client that vanished without a word after ${span}: until then an emit that was not ` +
        'committed holds readers back. Connections of aftercommit ask for less; those of other clients do not.',
      fix:
        'alter system set tcp_keepalives_idle = 30; alter system set tcp_keepalives_interval = 10; ' +
        'alter system set tcp_keepalives_count = 3; select pg_reload_conf()',
    },
  ]
}

const MOST_SKEW_MS = 2_000

function clocks({ clockSkewMs }: ServerFacts): Finding {
  const check = 'clocks'
  if (Math.abs(clockSkewMs) <= MOST_SKEW_MS) return ok(check, 'this host and the database agree')
  const direction = clockSkewMs > 0 ? 'ahead of' : 'behind'
  return {
    level: 'warning',
    check,
    message: `The clock of the database is ${formatDuration(Math.abs(clockSkewMs))} ${direction} that of this host.`,
    fix: 'Run a time service (chrony, systemd-timesyncd) on both.',
  }
}

const OLD_PREPARED_SECONDS = 600

function preparedTransactions({ prepared }: ServerFacts): Finding[] {
  const check = 'prepared transactions'
  if (prepared.length === 0) return [ok(check, 'none')]
  return prepared.map(({ gid, owner, ageSeconds }) => ({
    level: ageSeconds > OLD_PREPARED_SECONDS ? 'warning' : 'note',
    check,
    message: `Transaction ${quoteLiteral(gid)} of ${owner} was prepared ${formatDuration(ageSeconds * 1_000)} ago and is neither committed nor rolled back.`,
    fix: `rollback prepared ${quoteLiteral(gid)}`,
  }))
}

function slots({ inactiveSlots }: ServerFacts): Finding[] {
  const check = 'replication slots'
  if (inactiveSlots.length === 0) return [ok(check, 'none is left behind')]
  return inactiveSlots.map(({ name, keptBytes }) => ({
    level: 'warning',
    check,
    message: `Nobody reads the replication slot ${quoteLiteral(name)}, for which the server keeps ${keptBytes === null ? 'its WAL' : `${Math.round(keptBytes / 1_048_576)} MB of WAL`} and ever more.`,
    fix: `select pg_drop_replication_slot(${quoteLiteral(name)})`,
  }))
}
