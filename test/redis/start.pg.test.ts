/** `aftercommit start` does what [redis] and [audit] of the file say. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder, runCli, startCli } from '../cli/support.ts'
import { instance } from '../log/support/open-log.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { hasRedis, noRedis, startRedis } from '../support/redis.ts'

const WITHOUT_CLIENT = fileURLToPath(new URL('./without-client.mjs', import.meta.url))

beforeAll(buildPackage)

const RULE = '[observers.note]\non = "lamp.lit"\nactions = [{ type = "log" }]\n'

async function opened(file: string) {
  const { url } = await testDatabase({ migrated: true })
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'aftercommit.toml'), file + RULE)
  return { url, options: { cwd, env: { DATABASE_URL: url, REDIS_PASSWORD: 'canary-4711' } } }
}

describe.runIf(hasRedis())('aftercommit start', () => {
  it('publishes word of events on the channel of the file, and keeps an audit once per event', async () => {
    const redis = await startRedis()
    const { url, options } = await opened(`[redis]\nurl = "${redis.url}"\nchannel = "shop"\n[audit]\n`)
    const heard: string[] = []
    await (await redis.client()).subscribe('shop', (text) => void heard.push((JSON.parse(text) as { id: string }).id))
    const running = [startCli(['start'], options), startCli(['start'], options)]
    for (const one of running) await one.waitForLine('Ready:')
    const ac = instance({ database: url })
    await ac.transaction((tx) =>
      tx.emit('order.placed', {
        id: 'a',
        payload: { card: 'never in the audit' },
        aggregate: { type: 'order', id: '7' },
        metadata: { userId: 'ada' },
      }),
    )
    const sql = await connect(url)
    const { rows } = await eventually(async () => {
      const found = await sql.query('select who, what, target, after from aftercommit.audit')
      return found.rowCount! > 0 && heard.length > 0 && found
    })
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({ who: 'user ada', what: 'order.placed', target: 'order 7', after: { id: 'a' } })
    expect(JSON.stringify(rows)).not.toContain('never in the audit')
    expect(heard).toEqual(['a'])
    for (const one of running) {
      one.kill('SIGTERM')
      expect(await one.exited).toEqual({ code: 0, signal: null })
    }
  })
})

it('starts without its Redis, says that it is away, and shows no password', async () => {
  const address = (await noRedis()).replace('redis://', 'redis://:canary-4711@')
  const { options } = await opened(`[redis]\nurl = "${address}"\n`)
  const running = startCli(['start'], options)
  await running.waitForLine('Ready:')
  await running.waitForLine('redis is away')
  running.kill('SIGTERM')
  expect((await running.exited).code).toBe(0)
  const { stdout, stderr } = await runCli(['doctor'], options)
  expect(stdout + stderr).toMatch(/problem +redis/)
  expect(running.lines.join('\n') + stdout + stderr).not.toContain('canary')
})

it('does not start without the client, and says how to get it', async () => {
  const { options } = await opened(`[redis]\nurl = "redis://localhost"\n`)
  const env = { ...options.env, NODE_OPTIONS: `--import ${WITHOUT_CLIENT}` }
  const { code, stderr } = await runCli(['start'], { ...options, env })
  expect(code).not.toBe(0)
  expect(stderr).toContain('npm install @redis/client')
})

it('connects to nothing when [redis] says enabled = false', async () => {
  const { options } = await opened(`[redis]\nenabled = false\nurl = "redis://nobody.invalid"\n`)
  const env = { ...options.env, NODE_OPTIONS: `--import ${WITHOUT_CLIENT}` }
  const running = startCli(['start'], { ...options, env })
  await running.waitForLine('Ready:')
  running.kill('SIGTERM')
  expect((await running.exited).code).toBe(0)
})
