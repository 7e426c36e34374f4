/** Under which conditions a run took place, and the file that keeps them with its figures. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { root } from '../scripts/steps.mjs'

export function describeRun(server, { ms, rounds, quick }) {
  const processors = cpus()
  return {
    when: new Date().toISOString(),
    server,
    node: process.version,
    cpu: `${processors.length} × ${processors[0]?.model.trim() ?? 'unknown'}`,
    commit: commit(),
    ms,
    rounds,
    quick,
  }
}

/** Such as `3f2a91c`, or `3f2a91c with changes`; null outside of a clone. */
function commit() {
  try {
    const git = (...args) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const changed = git('status', '--porcelain').trim() !== ''
    return `${git('rev-parse', '--short', 'HEAD').trim()}${changed ? ' with changes' : ''}`
  } catch {
    return null
  }
}

/** A few journeys by name, more of them as `journeys`; cases always by name. */
function nameOf(results) {
  const played = results.map(({ name }) => name.split('/'))
  const cases = played.filter(([kind]) => kind !== 'journeys').map(([name]) => name)
  const journeys = played.filter(([kind]) => kind === 'journeys').map(([, name]) => name)
  if (journeys.length === 0) return cases.join('-')
  return [...cases, 'journeys', ...(journeys.length > 4 ? [] : journeys)].join('-')
}

export function recordRun(about, results) {
  const folder = join(root, 'bench/results')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${about.when.slice(0, 10)}-${about.server.kind}-${nameOf(results)}.json`)
  writeFileSync(file, `${JSON.stringify({ about, results }, null, 2)}\n`)
  return file.slice(root.length)
}
