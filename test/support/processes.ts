/** A program of its own process, to be watched and killed. Whatever is still running when the test ends is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { eventually } from './eventually.ts'
import { STRICT } from './strict.ts'

export interface TestProcess {
  readonly pid: number
  /** Everything printed so far, standard error included. */
  readonly lines: readonly string[]
  /** The first line that matches, past or future; fails when the process ends without it. */
  waitForLine(pattern: string | RegExp, deadline?: number): Promise<string>
  send(line: string): void
  kill(signal?: NodeJS.Signals): void
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export function spawnScript(script: string, args: string[] = [], env: Record<string, string> = {}): TestProcess {
  return watch(spawn(process.execPath, [...STRICT, script, ...args], { env: { ...process.env, ...env } }))
}

export function watch(child: ChildProcess): TestProcess {
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', (line) => lines.push(line))
  }
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const isRunning = () => child.exitCode === null && child.signalCode === null
  onTestFinished(async () => {
    if (!isRunning()) return
    child.kill('SIGKILL')
    await exited
  })

  return {
    pid: child.pid!,
    lines,
    exited,
    async waitForLine(pattern, deadline = 30_000) {
      const matches = (line: string) => (typeof pattern === 'string' ? line.includes(pattern) : pattern.test(line))
      const outcome = await eventually(() => lines.find(matches) ?? (isRunning() ? undefined : GONE), { deadline })
      if (outcome === GONE) throw new Error(`ended without printing ${pattern}:\n${lines.join('\n')}`)
      return outcome as string
    },
    send: (line) => void child.stdin?.write(`${line}\n`),
    kill: (signal = 'SIGKILL') => void child.kill(signal),
  }
}

const GONE = Symbol('gone')
