import { describe, expect, it } from 'vitest'
import {
  closeOpenPartition,
  type LogFacts,
  logFindings,
  nodeFinding,
  rightsFindings,
  schemaFinding,
} from '../../src/log/log-findings.ts'
import { type Finding, serverFindings } from '../../src/postgres/index.ts'
import { clockSkew, type ServerFacts } from '../../src/postgres/inspect.ts'

const server: ServerFacts = {
  versionNumber: 180_004,
  version: '18.4',
  database: 'shop',
  role: 'app',
  standby: false,
  synchronousCommit: 'on',
  fsync: true,
  fullPageWrites: true,
  idleInTransactionTimeoutMs: 60_000,
  vanishedSeconds: 60,
  queueUsage: 0,
  timeMs: 0,
  clockSkewMs: 0,
  prepared: [],
  inactiveSlots: [],
  path: 'direct',
  hearsNotifications: true,
}

const rights = {
  role: 'app',
  installed: true,
  owner: 'owner',
  isOwner: true,
  mayEmit: true,
  mayRead: true,
  seesSessions: true,
}

const log: LogFacts = {
  schema: '"aftercommit"',
  rights,
  book: {
    frontier: 5n,
    head: 5n,
    sequence: 5n,
    sequenceCache: 1,
    witnessKept: true,
    partitionSize: 100n,
    retention: false,
  },
  samePlace: true,
  lastEpoch: { epoch: 1, beganAfter: 0n, reason: 'installed', ageSeconds: 10 },
  holders: [],
  processes: [],
  neutralConfigHash: 'none',
  invalidIndexes: [],
  openPartitionFrom: null,
}

const holder = { pid: 7, preparedGid: null, application: 'web', user: 'app', state: 'active', ageSeconds: 61 }
const running = {
  process: 'a',
  host: 'h',
  pid: 1,
  version: '1.0.0',
  configHash: 'x',
  startedSecondsAgo: 5,
  heartbeatSecondsAgo: 1,
}

function worst(findings: Finding[]): Finding[] {
  return findings.filter(({ level }) => level !== 'ok')
}

describe('a server', () => {
  it('that is well has nothing but ok', () => {
    expect(worst(serverFindings(server))).toEqual([])
  })

  const cases: [string, Partial<ServerFacts>, Partial<Finding>][] = [
    ['too old', { versionNumber: 130_020, version: '13.20' }, { level: 'problem', check: 'server version' }],
    [
      'before the fix of notifications',
      { versionNumber: 170_007 },
      { level: 'note', fix: 'Upgrade to 17.8 or newer.' },
    ],
    ['that is a standby', { standby: true, hearsNotifications: null }, { level: 'problem', check: 'primary' }],
    [
      'behind a transaction pooler',
      { path: 'transaction pooler', hearsNotifications: null },
      { level: 'warning', check: 'pooler' },
    ],
    [
      'behind a pooler that hears nothing',
      { path: 'pooled', hearsNotifications: false },
      { level: 'warning', check: 'pooler' },
    ],
    ['that does not notify', { hearsNotifications: false }, { level: 'warning', check: 'notifications' }],
    ['with a queue that fills', { queueUsage: 0.2 }, { level: 'note', check: 'notification queue' }],
    ['with a queue that is half full', { queueUsage: 0.6 }, { level: 'warning', check: 'notification queue' }],
    [
      'that commits asynchronously',
      { synchronousCommit: 'off' },
      { level: 'warning', fix: 'alter database "shop" set synchronous_commit = on' },
    ],
    [
      'without fsync',
      { fsync: false },
      { level: 'warning', fix: 'alter system set fsync = on; select pg_reload_conf()' },
    ],
    [
      'without a timeout for idle transactions',
      { idleInTransactionTimeoutMs: 0 },
      { level: 'note', check: 'idle transactions' },
    ],
    [
      'with the keep-alive of an untouched Linux',
      { vanishedSeconds: 7_875 },
      { level: 'note', check: 'tcp_keepalives', fix: expect.stringContaining('tcp_keepalives_idle') },
    ],
    [
      'whose clock is ahead',
      { clockSkewMs: 2_500 },
      { level: 'warning', message: expect.stringContaining('2.5 s ahead of') },
    ],
    [
      'whose clock is behind',
      { clockSkewMs: -3_000 },
      { level: 'warning', message: expect.stringContaining('3 s behind') },
    ],
    [
      'with a young prepared transaction',
      { prepared: [{ gid: "a'b", owner: 'x', ageSeconds: 5 }] },
      { level: 'note', fix: "rollback prepared 'a''b'" },
    ],
    [
      'with an old prepared transaction',
      { prepared: [{ gid: 'a', owner: 'x', ageSeconds: 601 }] },
      { level: 'warning' },
    ],
    [
      'with a slot nobody reads',
      { inactiveSlots: [{ name: 'old', keptBytes: 5 * 1_048_576 }] },
      { level: 'warning', fix: "select pg_drop_replication_slot('old')" },
    ],
  ]
  it.each(cases)('%s is told so, and only that', (_, facts, finding) => {
    expect(worst(serverFindings({ ...server, ...facts }))).toEqual([expect.objectContaining(finding)])
  })

  it('has its clock judged only by what the round trip cannot explain', () => {
    expect(clockSkew(1_500, 1_000, 2_000)).toBe(0)
    expect(clockSkew(5_000, 1_000, 2_000)).toBe(3_000)
    expect(clockSkew(500, 1_000, 2_000)).toBe(-500)
  })
})

describe('a log', () => {
  it('that is well has nothing but ok', () => {
    expect(worst(logFindings(log))).toEqual([])
  })

  const cases: [string, Partial<LogFacts>, Partial<Finding>][] = [
    [
      'with a cached sequence',
      { book: { ...log.book, sequenceCache: 50 } },
      { level: 'problem', fix: 'alter sequence "aftercommit".positions cache 1' },
    ],
    [
      'whose sequence is behind the head',
      { book: { ...log.book, sequence: 4n } },
      { level: 'problem', check: 'sequence' },
    ],
    [
      'whose sequence is behind the frontier',
      { book: { ...log.book, sequence: 5n, frontier: 9n } },
      { level: 'problem', check: 'sequence' },
    ],
    ['that was restored', { samePlace: false }, { level: 'warning', check: 'epoch' }],
    ['that lost events', { book: { ...log.book, witnessKept: false } }, { level: 'warning', check: 'epoch' }],
    [
      'that began anew today',
      { lastEpoch: { epoch: 2, beganAfter: 3n, reason: 'events were removed', ageSeconds: 60 } },
      { level: 'note', check: 'epoch' },
    ],
    [
      'held back for long',
      { holders: [holder, { ...holder, pid: 8, ageSeconds: 2 }] },
      { level: 'problem', fix: 'aftercommit unblock --pid 7' },
    ],
    ['held back for a moment', { holders: [{ ...holder, ageSeconds: 2 }] }, { level: 'note', check: 'frontier' }],
    [
      'held back by a prepared transaction',
      { holders: [{ ...holder, pid: null, preparedGid: "it's" }] } as never,
      { level: 'problem', fix: `aftercommit unblock --gid 'it'\\''s'` },
    ],
    [
      'with broken indexes',
      { invalidIndexes: ['a', 'b'] },
      { fix: 'reindex index concurrently "aftercommit"."a"; reindex index concurrently "aftercommit"."b"' },
    ],
    [
      'with a retention nobody may carry out',
      { book: { ...log.book, retention: true }, rights: { ...rights, isOwner: false } },
      { level: 'warning', fix: 'grant "owner" to "app"' },
    ],
  ]
  it.each(cases)('%s is told so, and only that', (_, facts, finding) => {
    expect(worst(logFindings({ ...log, ...facts }))).toEqual([expect.objectContaining(finding)])
  })

  it('is not blamed for what dead processes ran', () => {
    const other = { ...running, process: 'b', version: '2.0.0', configHash: 'y' }
    const messages = (processes: LogFacts['processes']) =>
      worst(logFindings({ ...log, processes })).map(({ message }) => message)
    expect(messages([running, other])).toHaveLength(2)
    expect(messages([running, { ...other, heartbeatSecondsAgo: 40 }])).toEqual([])
    expect(messages([running, { ...other, version: '1.0.0', configHash: 'none' }])).toEqual([])
  })

  it('gets an open partition closed at the next full size', () => {
    const sql = closeOpenPartition('"s"', 200n, { ...log.book, head: 345n })
    expect(sql).toContain('rename to events_000000000200')
    expect(sql).toContain('for values from (200) to (400)')
    expect(sql).toContain('from (400) to (maxvalue)')
  })
})

describe('rights and schema', () => {
  it('name the command that is missing', () => {
    expect(rightsFindings({ ...rights, installed: false }, 'aftercommit')).toMatchObject([
      { level: 'problem', fix: 'aftercommit migrate' },
    ])
    expect(rightsFindings({ ...rights, mayEmit: false, mayRead: false }, 'x')).toMatchObject([{ level: 'problem' }])
    expect(worst(rightsFindings({ ...rights, seesSessions: false }, 'x'))).toMatchObject([
      { fix: 'aftercommit migrate --grant-monitor app' },
    ])
    const status = { current: 2, latest: 3, pending: ['0003_x'], pendingFiles: [], changed: ['0001_log'] }
    const level = (state: 'current' | 'behind' | 'ahead' | 'too-new' | 'changed') =>
      schemaFinding({ ...status, state }).level
    expect([level('current'), level('behind'), level('ahead'), level('too-new'), level('changed')]).toEqual([
      'ok',
      'problem',
      'note',
      'problem',
      'problem',
    ])
    expect(schemaFinding({ ...status, state: 'too-new' }).message).toContain('version 2, and this aftercommit knows 3')
  })
})

describe('Node', () => {
  it('is judged by its numbers', () => {
    expect(['20.18.3', '20.19.0', '20.20.2', '24.0.0', '18.99.0'].map((version) => nodeFinding(version).level)).toEqual(
      ['problem', 'ok', 'ok', 'ok', 'problem'],
    )
  })
})
