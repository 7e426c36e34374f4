/**
 * `npm run chaos`: the guarantees in their long form. The same tests as in `npm test`, but minutes instead of seconds:
 * a quarter of an hour of random kills, 20,000 rounds of the hunt for a lost wake-up, ten times the writers' load, ten times
 * the deliveries to a destination that comes back, a path that is lost for 75 seconds.
 */
import { run, runTool } from './steps.mjs'

const { DATABASE_URL: _ignored, ...inherited } = process.env
const env = {
  ...inherited,
  AFTERCOMMIT_CHAOS_SECONDS: inherited.AFTERCOMMIT_CHAOS_SECONDS ?? '900',
  AFTERCOMMIT_HUNT_ROUNDS: inherited.AFTERCOMMIT_HUNT_ROUNDS ?? '20000',
  AFTERCOMMIT_PATH_SECONDS: inherited.AFTERCOMMIT_PATH_SECONDS ?? '75',
  AFTERCOMMIT_LOAD_FACTOR: inherited.AFTERCOMMIT_LOAD_FACTOR ?? '10',
}
const built = await run(process.execPath, ['scripts/build.mjs'], { env })
if (built !== 0) process.exit(built)
const files = ['chaos', 'wake-up', 'ordering', 'deliveries', 'deliveries-limits', 'lost-path'].map(
  (name) => `test/guarantees/${name}.test.ts`,
)
const chosen = process.argv.length > 2 ? process.argv.slice(2) : files
process.exit(await runTool('vitest', ['run', '--project', 'guarantees', '--testTimeout=7200000', ...chosen], { env }))
