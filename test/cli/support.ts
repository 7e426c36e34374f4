/** Runs the built command as its users do: a process of its own, in a folder of its own, with a clean environment. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type TestProcess, watch } from '../support/processes.ts'
import { STRICT } from '../support/strict.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const command = join(root, 'lib/cli/main.js')

export interface CliOptions {
  env?: Record<string, string>
  cwd?: string
  input?: string
}

export interface CliResult {
  code: number | null
  stdout: string
  stderr: string
}

export function runCli(args: readonly string[], { env = {}, cwd = emptyFolder(), input = '' }: CliOptions = {}) {
  return new Promise<CliResult>((resolve, reject) => {
    const child = spawn(process.execPath, [...STRICT, command, ...args], { cwd, env: { ...basics(), ...env } })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
    child.stdin.end(input)
  })
}

/** For commands that run until they are told to stop. */
export function startCli(args: readonly string[], { env = {}, cwd = emptyFolder() }: CliOptions = {}): TestProcess {
  return watch(spawn(process.execPath, [...STRICT, command, ...args], { cwd, env: { ...basics(), ...env } }))
}

/** Gone with the test. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function basics(): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/' }
}
