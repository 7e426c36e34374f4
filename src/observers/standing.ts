/**
 * Whether the rules of this process are in force. Within a group the newest set wins, so a process may lose its rules to a
 * newer one while it runs. It says so and goes on with its other work; it never takes over again by itself.
 *
 *   in force ──another set of the group is registered──▶ superseded ──the same set is registered again──▶ in force
 */
import type { Database } from '../postgres/index.ts'
import { createLoop, type PartOptions, type Service } from '../runtime/index.ts'
import { selectVersion } from '../subscriptions/index.ts'
import { type Rules, selectLost } from './registry-statements.ts'

export interface StandingParts extends PartOptions {
  readonly database: Database
  /** What this process put in force; undefined while it has not. */
  readonly rules: () => Rules | undefined
  /** The rules are in force again, by the hand of another process. */
  readonly onBack: () => Promise<void>
}

const LOOK_MS = 2_000
const PART = 'observer rules'

export function createStanding({ database, clock, logger, metrics, health, rules, onBack }: StandingParts): Service {
  /** The version that won over that of this process; undefined while it is in force. */
  let winner: string | undefined
  let told = ''

  async function look(): Promise<void> {
    const mine = rules()
    if (mine === undefined) return
    const found = await selectVersion(database.control, mine.subscription)
    if (mine !== rules()) return
    if (found === undefined || found === mine.version) return backInForce()
    const lost = await selectLost(database.control, mine.observers)
    if (mine !== rules()) return
    winner = found
    tell(mine.group, lost)
  }

  /** A newer set that has every rule of this process as it is takes nothing away: this process stays ready. */
  function tell(group: string, lost: readonly string[]): void {
    const names = lost.join(', ')
    if (`${winner} ${names}` === told) return
    told = `${winner} ${names}`
    if (lost.length === 0) health.forget(PART)
    else {
      const reason = `newer rules of group "${group}" are in force, without these of this process: ${names}`
      health.report({ name: PART, live: true, ready: false, reason })
    }
    logger.warn({ group, lost }, 'observers superseded by a newer set of rules')
  }

  async function backInForce(): Promise<void> {
    if (winner === undefined) return
    await onBack()
    winner = undefined
    told = ''
    health.forget(PART)
    logger.info({}, 'observers in force again')
  }

  const loop = createLoop({
    name: 'observer standing',
    clock,
    logger,
    metrics,
    async run({ wait }) {
      for (;;) {
        await look()
        await wait(LOOK_MS)
      }
    },
  })
  return {
    name: loop.name,
    get state() {
      return loop.state
    },
    start: () => loop.start(),
    async stop() {
      await loop.stop()
      health.forget(PART)
    },
  }
}
