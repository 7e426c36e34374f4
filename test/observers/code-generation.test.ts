import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { spawnScript } from '../support/processes.ts'

it('no text becomes code in a process that runs tests', () => {
  expect(() => Reflect.construct(Function, ['return 1'])).toThrow(EvalError)
})

it('no text becomes code in a process that tests start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-strict-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const script = join(folder, 'script.mjs')
  writeFileSync(script, `try { new Function('return 1') } catch (error) { console.log(error.name) }`)
  const child = spawnScript(script)
  await child.waitForLine('EvalError')
})
