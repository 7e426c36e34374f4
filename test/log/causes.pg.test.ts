import { expect, it } from 'vitest'
import { type Aftercommit, runWithCause } from '../../src/index.ts'
import { openLog } from './support/open-log.ts'

/** Emits because of another event, as a handler of that event would. */
async function emitBecause(ac: Aftercommit, id: string, because?: string): Promise<void> {
  const emit = () => ac.transaction((tx) => tx.emit('step.taken', { payload: {}, id }))
  const cause = because === undefined ? undefined : await ac.log.get(because)
  if (cause === undefined) return void (await emit())
  const { correlationId, depth } = cause.metadata
  await runWithCause({ correlationId: correlationId!, causationId: cause.id, depth }, emit)
}

it('tells what led to an event and what it led to, and leaves its relatives aside', async () => {
  const { ac } = await openLog()
  await emitBecause(ac, 'root')
  await emitBecause(ac, 'left', 'root')
  await emitBecause(ac, 'right', 'root')
  await emitBecause(ac, 'left.1', 'left')
  await emitBecause(ac, 'stranger')
  await emitBecause(ac, 'left.1.1', 'left.1')
  await emitBecause(ac, 'left.2', 'left')

  const ids = (events: readonly { id: string }[]) => events.map(({ id }) => id)
  const trace = await ac.log.trace('left')
  expect(trace.event.id).toBe('left')
  expect(ids(trace.ancestors)).toEqual(['root'])
  expect(ids(trace.descendants)).toEqual(['left.1', 'left.1.1', 'left.2'])
  expect(ids((await ac.log.trace('left.1.1')).ancestors)).toEqual(['root', 'left', 'left.1'])
  expect(ids((await ac.log.trace('root')).descendants)).toEqual(['left', 'right', 'left.1', 'left.1.1', 'left.2'])
  expect(await ac.log.trace('stranger')).toMatchObject({ ancestors: [], descendants: [] })
  expect(ids(await ac.log.correlated('root'))).toEqual(['root', 'left', 'right', 'left.1', 'left.1.1', 'left.2'])
  expect(ids(await ac.log.correlated('root', { limit: 2 }))).toEqual(['root', 'left'])
})

it('counts how deep a chain is', async () => {
  const { ac } = await openLog()
  await emitBecause(ac, '0')
  for (let n = 1; n <= 5; n++) await emitBecause(ac, String(n), String(n - 1))
  const depths = (await ac.log.correlated('0')).map(({ metadata }) => metadata.depth)
  expect(depths).toEqual([0, 1, 2, 3, 4, 5])
})

it('comes to an end where events claim to have caused each other', async () => {
  const { ac } = await openLog()
  const metadata = (causationId: string) => ({ correlationId: 'circle', causationId })
  await ac.transaction(async (tx) => {
    await tx.emit('step.taken', { payload: {}, id: 'a', metadata: metadata('b') })
    await tx.emit('step.taken', { payload: {}, id: 'b', metadata: metadata('a') })
    await tx.emit('step.taken', { payload: {}, id: 'self', metadata: metadata('self') })
  })
  const trace = await ac.log.trace('a')
  expect(trace.ancestors.map(({ id }) => id)).toEqual(['b'])
  expect(trace.descendants.map(({ id }) => id)).toEqual(['b'])
  expect(await ac.log.trace('self')).toMatchObject({ ancestors: [], descendants: [] })
})

it('knows no event of that name', async () => {
  const { ac } = await openLog()
  await expect(ac.log.trace('nobody')).rejects.toMatchObject({ code: 'EVENT_NOT_FOUND' })
})

it('traces an event late in a large correlation, says where the search ended, and lists the rest page by page', async () => {
  const { ac, sql } = await openLog()
  const append = (from: number, to: number, cause: string) =>
    sql.query(
      `select count(aftercommit.append(n::text, 'step.taken', null, null, '{}',
                jsonb_build_object('correlation_id', 'c', 'causation_id', $3::text)))
         from generate_series($1::integer, $2::integer) n`,
      [from, to, cause],
    )
  await append(0, 0, 'nowhere')
  await append(1, 10_001, '0')
  await append(10_002, 10_003, '10001')
  const late = await ac.log.trace('10001')
  expect(late.ancestors.map(({ id }) => id)).toEqual(['0'])
  expect(late.descendants.map(({ id }) => id)).toEqual(['10002', '10003'])
  expect(late.complete).toBe(true)
  const first = await ac.log.trace('0')
  expect(first.descendants).toHaveLength(10_000)
  expect(first.complete).toBe(false)
  const page = await ac.log.correlated('c', { limit: 10_000 })
  const rest = await ac.log.correlated('c', { after: page.at(-1)!.position })
  expect(rest.map(({ id }) => id)).toEqual(['10000', '10001', '10002', '10003'])
})
