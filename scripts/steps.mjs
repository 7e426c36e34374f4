/**
 * What the scripts share: where the repository is, and how to run one program of it and wait for its end.
 * Tools are started through Node itself rather than through `npx`, so that nothing is ever fetched to run them.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

const tools = {
  biome: 'node_modules/@biomejs/biome/bin/biome',
  tsc: 'node_modules/@typescript/native/bin/tsc',
  vitest: 'node_modules/vitest/vitest.mjs',
}

/** Runs an installed tool, with this Node or another one, and gives its exit code. */
export function runTool(tool, args, { node = process.execPath, ...options } = {}) {
  return run(node, [tools[tool], ...args], options)
}

/** Runs a program with this terminal as its own and gives its exit code; a signal counts as 128, like in a shell. */
export function run(command, args, { env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 128))
  })
}

export function seconds(sinceMs) {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`
}
