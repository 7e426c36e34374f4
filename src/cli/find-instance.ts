/** One instance by its type and id, without the code of its workflow. */
import { AftercommitError } from '../errors.ts'
import type { Aftercommit, InstanceSummary } from '../index.ts'

interface InstanceRef {
  readonly type: string
  readonly id: string
}

/** Lists go by the last event, so whoever knows its position finds the instance at once. */
export async function findInstance(ac: Aftercommit, { type, id }: InstanceRef): Promise<InstanceSummary> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const last = await ac.log.last({ type, id })
    if (last === undefined) break
    const { items } = await ac.workflows.list({ type }, { limit: 1, after: String(last.position + 1n) })
    const [found] = items
    if (found?.id === id) return found
    // It went on in between: look again from its new last event.
    if (found === undefined || (await ac.log.last({ type, id }))?.position === last.position) break
  }
  throw new AftercommitError(
    'UNKNOWN_WORKFLOW',
    `There is no workflow ${type}/${id} in this database. See: aftercommit workflows list --type ${type}`,
  )
}

const MOST_TRIES = 5
