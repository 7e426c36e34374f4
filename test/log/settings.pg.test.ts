import { expect, it } from 'vitest'
import { readLogSettings, saveLogSettings } from '../../src/log/index.ts'
import { writeIdleMark } from '../../src/log/wake-statements.ts'
import { openTestDatabase } from '../support/database.ts'
import { instance } from './support/open-log.ts'

const DEFAULTS = {
  wake: 'doorbell',
  maxPayloadBytes: 1_048_576,
  maxDepth: 32,
  maxNesting: 64,
  partitionSize: 1_000_000,
  retentionSeconds: null,
}

it('has defaults, and changes only what is given', async () => {
  const { db } = await openTestDatabase({ migrated: true })
  expect(await readLogSettings(db)).toEqual(DEFAULTS)
  await saveLogSettings(db, { maxDepth: 5 })
  await saveLogSettings(db, { retentionSeconds: 86_400.5 })
  expect(await readLogSettings(db)).toEqual({ ...DEFAULTS, maxDepth: 5, retentionSeconds: 86_400.5 })
  await saveLogSettings(db, { maxPayloadBytes: 10_000, retentionSeconds: null })
  expect(await readLogSettings(db)).toEqual({ ...DEFAULTS, maxDepth: 5, maxPayloadBytes: 10_000 })
})

it('writes nothing when nothing changes, so that every process may save its own at the start', async () => {
  const { db } = await openTestDatabase({ migrated: true })
  await saveLogSettings(db, { wake: 'poll', maxDepth: 7, retentionSeconds: 60 })
  const row = async () => (await db.query('select ctid::text from aftercommit.settings')).rows
  const before = await row()
  await saveLogSettings(db, { wake: 'poll', maxDepth: 7, retentionSeconds: 60 })
  await saveLogSettings(db, {})
  expect(await row()).toEqual(before)
})

it('removes the idle marks when the bell is turned off, and only then', async () => {
  const { db } = await openTestDatabase({ migrated: true })
  const marks = async () => (await db.query('select process from aftercommit.idle_marks')).rows.length
  await writeIdleMark(db, 'reader')
  await saveLogSettings(db, { maxDepth: 9 })
  expect(await marks()).toBe(1)
  await saveLogSettings(db, { wake: 'poll' })
  expect(await marks()).toBe(0)
})

it('refuses a way to wake that does not exist', async () => {
  const { db } = await openTestDatabase({ migrated: true })
  await expect(saveLogSettings(db, { wake: 'shout' as 'poll' })).rejects.toMatchObject({ code: '23514' })
  expect(await readLogSettings(db)).toEqual(DEFAULTS)
})

it('is stored by migrate, for what an instance was told and not for the rest', async () => {
  const { db, url } = await openTestDatabase({ migrated: true })
  await instance({ database: url, log: { wake: 'poll', retention: '7d', maxPayload: '20kB' } }).migrate()
  expect(await readLogSettings(db)).toEqual({
    ...DEFAULTS,
    wake: 'poll',
    retentionSeconds: 7 * 86_400,
    maxPayloadBytes: 20_480,
  })
  await instance({ database: url, log: { maxPayload: '20kB' } }).migrate()
  expect(await readLogSettings(db)).toMatchObject({ wake: 'poll', retentionSeconds: 7 * 86_400 })
  await instance({ database: url, log: { retention: 'unlimited' } }).migrate()
  expect(await readLogSettings(db)).toMatchObject({ wake: 'poll', retentionSeconds: null })
})
