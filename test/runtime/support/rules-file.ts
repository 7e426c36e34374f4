/** Rules in a file of their own, removed after the test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function rulesFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ac-rules-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'rules.toml'), text)
  return join(folder, 'rules.toml')
}
