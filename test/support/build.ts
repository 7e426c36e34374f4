/** Processes that tests start run the built package. Nothing happens when it is up to date. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const BUILD = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))

export function buildPackage(): void {
  execFileSync(process.execPath, [BUILD, '--quiet'], { stdio: ['ignore', 'pipe', 'inherit'] })
}
