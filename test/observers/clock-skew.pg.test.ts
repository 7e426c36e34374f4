/** The clock of the worker is an hour off: the database's clock stamps what receivers check. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { verifyWebhook } from '../../src/index.ts'
import { createDatabaseTime } from '../../src/postgres/index.ts'
import { type Clock, createHealth, createRegistry, silentLogger, systemClock } from '../../src/runtime/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { openTestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { httpReceiver } from '../support/receivers.ts'

const HOUR_MS = 3_600_000
const SECRET = 'whsec_c2VjcmV0LW9mLWF0LWxlYXN0LTI0LWJ5dGVz'

function shifted(byMs: () => number): Clock {
  return { ...systemClock, now: () => new Date(Date.now() + byMs()) }
}

it.each([HOUR_MS, -HOUR_MS])(
  'a worker whose clock is %i ms off sends signed webhooks that their receiver accepts, and says that it is off',
  async (skewMs) => {
    const { logger, lines } = collectingLogger()
    const { ac, emit } = await openSubscriptions({ clock: shifted(() => skewMs), logger })
    const receiver = await httpReceiver()
    const folder = mkdtempSync(join(tmpdir(), 'ac-skew-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'aftercommit.toml')
    writeFileSync(
      file,
      `[network]
     allow = ["127.0.0.1"]
     [observers.erp]
     on = "lamp.lit"
     actions = [{ type = "webhook", url = "${receiver.url}/hook", secret = "${SECRET}" }]`,
    )
    await ac.observers.loadFile(file)
    await ac.start()
    await emit('a')
    const call = await eventually(() => receiver.calls[0])
    expect(verifyWebhook(SECRET, call.headers, call.body)).toMatchObject({ id: expect.stringMatching(/^msg_/) })
    expect(lines.filter((line) => line.includes('the clock of this host is'))).toEqual([
      expect.stringMatching(skewMs > 0 ? /^warn .* ahead of that of the database/ : /^warn .* behind that/),
    ])
    const [, seconds] = /^aftercommit_clock_skew_seconds (\S+)$/m.exec(await ac.metrics()) ?? []
    expect(Number(seconds) / 3_600).toBeCloseTo(skewMs > 0 ? -1 : 1, 1)
    expect((await ac.doctor()).find(({ check }) => check === 'clocks')).toMatchObject({ level: 'warning' })
  },
)

it('a jump of the clock of the host between two questions does not move the time of the database', async () => {
  const { db } = await openTestDatabase()
  let skewMs = 0
  const clock = shifted(() => skewMs)
  const parts = { database: db, clock, logger: silentLogger, metrics: createRegistry(), health: createHealth() }
  const time = createDatabaseTime(parts)
  onTestFinished(() => time.service.stop())
  await time.service.start()
  for (skewMs of [HOUR_MS, -HOUR_MS]) {
    expect(Math.abs(time.clock.now().getTime() - Date.now())).toBeLessThan(60_000)
    expect(Math.abs(clock.now().getTime() - Date.now())).toBeGreaterThan(60_000)
  }
})
