import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { runUpkeep } from '../../src/log/index.ts'
import { droppable } from '../../src/log/upkeep.ts'
import { listPartitions } from '../../src/log/upkeep-statements.ts'
import { grantRole } from '../../src/postgres/index.ts'
import { silentLogger } from '../../src/runtime/index.ts'
import { connect, openDatabase, serverUrl } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { openLog } from './support/open-log.ts'
import { makePartitionsSmall, publishFrontier } from './support/small-partitions.ts'

const NOTHING = { added: [], dropped: [], indexed: [], postponed: [] }
const needed = { logger: silentLogger, neededFrom: async () => 0n }

it('finds nothing to do on a new log', async () => {
  const { ac, url } = await openLog()
  expect(await ac.upkeep()).toEqual(NOTHING)
  const partitions = await listPartitions(openDatabase({ database: url }))
  expect(partitions).toEqual([
    { name: 'events_000000000000', from: 0n, to: 1_000_000n, detaching: false },
    { name: 'events_000001000000', from: 1_000_000n, to: 2_000_000n, detaching: false },
    { name: 'events_open', from: 2_000_000n, to: null, detaching: false },
  ])
})

it('makes room for a head that has jumped over several partitions at once', async () => {
  const { ac, sql } = await openLog()
  await makePartitionsSmall(sql)
  await sql.query(`select setval('aftercommit.positions', 450)`)
  const added = ['events_000000000200', 'events_000000000300', 'events_000000000400', 'events_000000000500']
  expect(await ac.upkeep()).toEqual({ ...NOTHING, added })
  const { position } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
  expect(position).toBe(451n)
  expect(await ac.upkeep()).toEqual(NOTHING)
})

it('makes the more room the faster the log grows, and at most twenty partitions of it', async () => {
  const { ac, sql } = await openLog()
  await makePartitionsSmall(sql)
  const grow = (head: number, inThreeMinutes: number) =>
    sql.query(`truncate aftercommit.frontier_marks; select setval('aftercommit.positions', ${head});
      insert into aftercommit.frontier_marks (at, frontier)
      values (clock_timestamp() - interval '1 hour', 0), (clock_timestamp() - interval '2 minutes', ${head - inThreeMinutes})`)
  const openFrom = async () =>
    (
      await sql.query(`select substring(pg_get_expr(relpartbound, oid) from '\\d+')::integer as low
      from pg_class where oid = 'aftercommit.events_open'::regclass`)
    ).rows[0].low
  await grow(450, 300)
  await ac.upkeep()
  expect(await openFrom()).toBe(1_400)
  await grow(1_000, 900)
  await ac.upkeep()
  expect(await openFrom()).toBe(3_100)
})

it('forgets processes that nobody has heard of for a day', async () => {
  const { ac, sql } = await openLog()
  await sql.query(`insert into aftercommit.processes (process, host, pid, version, config_hash, heartbeat_at)
    values ('old', 'h', 1, '0', '0', now() - interval '25 hours'), ('new', 'h', 1, '0', '0', now() - interval '23 hours')`)
  await sql.query(`insert into aftercommit.idle_marks values ('old', now() - interval '25 hours'), ('new', now())`)
  await ac.upkeep()
  expect((await sql.query('select process from aftercommit.processes')).rows).toEqual([{ process: 'new' }])
  expect((await sql.query('select process from aftercommit.idle_marks')).rows).toEqual([{ process: 'new' }])
})

it('is done as far as the role may, and says what only the owner can do', async () => {
  const { sql, url } = await openLog()
  await makePartitionsSmall(sql)
  await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 150)`)
  await sql.query(`update aftercommit.settings set retention = '1 hour'`)
  await publishFrontier(sql, 150)
  const role = `ac_run_${randomBytes(4).toString('hex')}`
  const cluster = await connect(serverUrl())
  await cluster.query(`create role ${role} login password '${role}'`)
  onTestFinished(async () => {
    await sql.query(`drop owned by ${role}`)
    await cluster.query(`drop role ${role}`)
  })
  await grantRole(openDatabase({ database: url }), role, 'run')
  const database = openDatabase({ database: url.replace(/\/\/[^/@]*@/, `//${role}:${role}@`) })
  expect(await runUpkeep({ database, ...needed })).toEqual({
    ...NOTHING,
    added: ['events_000000000200'],
    postponed: ['retention: only the owner of the schema may drop partitions'],
  })
})

it('tells the log what it did, and nothing when it did nothing', async () => {
  const { sql, url } = await openLog()
  await makePartitionsSmall(sql)
  const database = openDatabase({ database: url })
  const { logger, lines } = collectingLogger()
  await runUpkeep({ database, ...needed, logger })
  expect(lines).toEqual([])
  await sql.query(`select setval('aftercommit.positions', 150)`)
  await runUpkeep({ database, ...needed, logger })
  expect(lines).toEqual(['info log upkeep'])
})

it('drops only what is whole, final and not needed', () => {
  const partition = (from: bigint, to: bigint | null) => ({ name: `p${from}`, from, to, detaching: false })
  const partitions = [partition(0n, 100n), partition(100n, 200n), partition(200n, null)]
  const names = (neededFrom: bigint, frontier: bigint) =>
    droppable(partitions, neededFrom, frontier).map(({ name }) => name)
  expect(names(0n, 1_000n)).toEqual([])
  expect(names(99n, 1_000n)).toEqual([])
  expect(names(100n, 1_000n)).toEqual(['p0'])
  expect(names(1_000n, 199n)).toEqual(['p0'])
  expect(names(1_000n, 1_000n)).toEqual(['p0', 'p100'])
})

it('says who keeps it from its work when a role without that right holds its lock', async () => {
  const { ac, url, sql } = await openLog()
  const role = `ac_blocker_${randomBytes(4).toString('hex')}`
  await sql.query(`create role ${role} login password '${role}'`)
  const blocker = await connect(url.replace(/\/\/[^/@]*@/, `//${role}:${role}@`))
  await blocker.query(`select pg_advisory_lock(hashtextextended('aftercommit:"aftercommit":upkeep', 0))`)
  const { postponed } = await ac.upkeep()
  expect(postponed).toEqual([expect.stringContaining(`of role ${role}`)])
  await blocker.end()
  await eventually(async () => (await ac.upkeep()).postponed.length === 0)
  await sql.query(`drop role ${role}`)
})
