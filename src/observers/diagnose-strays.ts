/** Whether live processes still have observers that a newer set of rules dropped. */
import type { Finding, Queryable } from '../postgres/index.ts'
import { ok } from '../postgres/index.ts'
import { selectStrayProcesses } from './registry-statements.ts'

export async function diagnoseStrays(db: Queryable): Promise<Finding> {
  const strays = await selectStrayProcesses(db)
  if (strays.length === 0) return ok('observers', 'every observer that a live process has is in force')
  const shown = strays
    .map(({ host, pid, observers }) => `${observers.join(', ')} (process ${pid} on ${host})`)
    .join('; ')
  return {
    check: 'observers',
    level: 'warning',
    message: `Observers of live processes are not in force, because a newer set of rules of their group dropped them: ${shown}.`,
    fix: 'In a deployment, end the older processes. For a service with rules of its own, give it a `group` of its own.',
  }
}
