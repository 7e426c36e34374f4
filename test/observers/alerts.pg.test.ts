import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

test('retries of an observer named alerts are its own, and not those of alerts', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-alerts-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const seen: string[] = []
  ac.observers.action('call', (event, { attempt }) => {
    seen.push(`${event.id} ${attempt}`)
    if (attempt === 1) throw new Error('busy')
  })
  // Nobody listens at that port: whatever takes the retry for an alert fails, and does not call the handler.
  writeFileSync(
    join(folder, 'aftercommit.toml'),
    `
[providers.slack]
webhook_url = "http://127.0.0.1:9/none"
[failure_alerts]
slack = "#ops"
[observers.alerts]
on = "lamp.lit"
retry = { max_attempts = 3, initial_delay = "10ms" }
[[observers.alerts.actions]]
type = "custom"
name = "slack"
handler = "call"
`,
  )
  await ac.observers.loadFile(join(folder, 'aftercommit.toml'))
  await ac.start()
  await emit('a')
  await eventually(() => seen.length === 2)
  await eventually(async () => (await sql.query('select from aftercommit.deliveries')).rowCount === 0)
  expect(seen).toEqual(['a 1', 'a 2'])
})
