/** Faults of this host are no failures of a destination, and no attempts. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { watch } from '../support/processes.ts'
import { httpReceiver } from '../support/receivers.ts'

const program = fileURLToPath(new URL('support/out-of-descriptors.mjs', import.meta.url))

test('a process without descriptors makes its webhooks when it has some again, opens no circuit and says so once', async () => {
  const receiver = await httpReceiver((response) => response.setHeader('connection', 'close').end())
  const { url } = await testDatabase({ migrated: true })
  const folder = mkdtempSync(join(tmpdir(), 'ac-descriptors-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'rules.toml')
  writeFileSync(
    file,
    `[network]
     allow = ["127.0.0.1"]
     [observers.erp]
     on = "lamp.lit"
     actions = [{ type = "webhook", url = "${receiver.url}/hook", retry = false }]`,
  )
  const child = spawn('bash', ['-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath, program, url, file])
  onTestFinished(() => void child.kill('SIGKILL'))
  const { lines } = watch(child)
  const sees = (part: string) => eventually(() => lines.some((line) => line.includes(part)), { deadline: 60_000 })
  await sees('ready')
  await eventually(() => receiver.calls.length === 1 && receiver.open === 0)
  child.stdin.write('exhaust')
  await sees('out of file descriptors')
  expect(receiver.calls).toHaveLength(1)
  child.stdin.write('free')
  await eventually(() => receiver.calls.length === 21, { deadline: 60_000 })
  const sql = await connect(url)
  const { rows } = await sql.query(
    `select destination, failures from aftercommit.destinations where failures > 0 or opened_at is not null`,
  )
  expect(rows).toEqual([])
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  expect(lines.filter((line) => line.includes('out of file descriptors')).length).toBeLessThanOrEqual(2)
})
