/**
 * `npm run simulate`: plays subscriptions against a simulated database in random orders of faults. `--help` says more.
 * Compiles test/simulation first, with the source that it plays.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { lock } from './lock.mjs'
import { root, run, runTool } from './steps.mjs'

const out = join(root, 'node_modules/.cache/aftercommit/simulation')
mkdirSync(out, { recursive: true })
// Below node_modules no other package.json says that these are modules.
writeFileSync(join(out, 'package.json'), '{ "type": "module" }\n')
const release = await lock(join(root, 'node_modules/.cache/aftercommit/simulation.lock'))
if (!existsSync(join(root, 'src/postgres/migrations.generated.ts'))) {
  await step(run(process.execPath, ['scripts/embed-migrations.mjs']))
}
await step(runTool('tsc', ['-p', 'tsconfig.simulation.json']))
const { main } = await import(pathToFileURL(join(out, 'test/simulation/main.js')).href)
release()
process.exit(await main(process.argv.slice(2)))

async function step(ended) {
  const code = await ended
  if (code === 0) return
  console.error('simulate: the source does not compile, see above. Nothing was played.')
  process.exit(2)
}
