/** Several test files ask for a build at once: one process builds, the others wait, and a killed one blocks nobody. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { watch } from '../support/processes.ts'

const LOCK = fileURLToPath(new URL('../../scripts/lock.mjs', import.meta.url))

function lockFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ac-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'lock')
}

/** A process that takes the lock, says so and keeps it until a line comes. */
function holder(file: string) {
  const program = `import { lock } from ${JSON.stringify(LOCK)}
    await lock(${JSON.stringify(file)}); console.log('mine'); process.stdin.once('data', () => process.exit())`
  return watch(spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'pipe'] }))
}

test('a lock goes from process to process, to one at a time, and is gone after the last', async () => {
  const file = lockFile()
  const holders = [holder(file), holder(file), holder(file)]
  const waiting = new Set(holders)
  while (waiting.size > 0) {
    const first = await Promise.race([...waiting].map((one) => one.waitForLine('mine').then(() => one)))
    expect([...waiting].filter(({ lines }) => lines.includes('mine'))).toEqual([first])
    waiting.delete(first)
    first.send('end')
    await first.exited
  }
  expect(existsSync(file)).toBe(false)
})

test('a lock whose holder was killed is taken by the next process', async () => {
  const file = lockFile()
  const killed = holder(file)
  await killed.waitForLine('mine')
  killed.kill()
  await killed.exited
  expect(existsSync(file)).toBe(true)
  await holder(file).waitForLine('mine')
})
