/**
 * `npm start`: builds if something changed, then runs the demo shop on the embedded Postgres. DATABASE_URL is ignored on
 * purpose: trying this out must never write into somebody's real database.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root, run } from './steps.mjs'

const built = await run(process.execPath, ['scripts/build.mjs', '--quiet'])
if (built !== 0) process.exit(built)

const { DATABASE_URL: _ignored, ...env } = process.env
const shop = spawn(process.execPath, [join(root, 'examples/shop/index.mjs'), ...process.argv.slice(2)], {
  cwd: root,
  env,
  stdio: 'inherit',
})
// Ctrl-C reaches the whole process group; the shop ends by itself and this script waits for it. A signal sent to this
// process alone is passed on.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => shop.kill('SIGTERM'))
shop.on('close', (code, signal) => process.exit(signal ? 128 : (code ?? 1)))
