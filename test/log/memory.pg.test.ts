/** What the readers of a process hold of the log together is bounded by its heap, however many they are. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { openLog } from './support/open-log.ts'

const script = fileURLToPath(new URL('support/many-readers.mjs', import.meta.url))

it('sixteen subscriptions read 300 events of 50 kB, and a few of 900 kB, in a heap of 64 MB', async () => {
  const { url, sql } = await openLog()
  const emit = (count: number, size: number) =>
    sql.query(
      `select aftercommit.emit('lamp.lit', null, null, jsonb_build_object('text', (
         select string_agg(md5(g.n || '.' || k), '') from generate_series(1, ${size} / 32) k)))
         from generate_series(1, ${count}) g (n)`,
    )
  await emit(300, 50_000)
  await emit(5, 900_000)
  const asked = { url, readers: 16, events: 305 }
  const child = spawn(process.execPath, ['--max-old-space-size=64', script, JSON.stringify(asked)])
  let said = ''
  let failed = ''
  child.stdout.on('data', (text) => {
    said += text
  })
  child.stderr.on('data', (text) => {
    failed += text
  })
  const [code] = await once(child, 'exit')
  expect([code, failed.slice(0, 2_000)]).toEqual([0, ''])
  const { handled, memory } = JSON.parse(said)
  expect(handled).toBe(16 * 305)
  expect(memory.readers).toBeGreaterThanOrEqual(16)
  expect(memory.pageBytes).toBeLessThan(memory.bytes / 32)
}, 300_000)
