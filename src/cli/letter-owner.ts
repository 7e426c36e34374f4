/** What to say about the owners of dead letters: that there is none of that name, or that it is not at work. */

import type { DeadLetter } from '../dead-letters/index.ts'
import { closest } from '../events/index.ts'
import type { Aftercommit } from '../index.ts'
import type { FilterOptions } from './letter-filter.ts'
import type { Output } from './output.ts'

/** Nothing was found for an owner: perhaps because nobody is called that. */
export async function adviseOwner(ac: Aftercommit, { owner, kind }: FilterOptions, output: Output): Promise<void> {
  if (owner === undefined || (kind !== undefined && kind !== 'subscription')) return
  const ids = (await ac.subscriptions.list()).map(({ id }) => id)
  if (ids.includes(owner)) return
  const near = closest(owner, ids)
  output.talk(
    `There is no subscription ${JSON.stringify(owner)}.${near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`}`,
  )
}

/** A mark is only a wish: somebody must run the owner for it to come true. */
export async function warnOfIdleOwners(ac: Aftercommit, letters: readonly DeadLetter[], output: Output): Promise<void> {
  const owners = new Set(letters.map(({ owner }) => owner))
  for (const { id, status, owner } of await ac.subscriptions.list()) {
    if (!owners.has(id)) continue
    if (status === 'paused') output.warn(`${id} is paused: they wait until it is resumed.`)
    else if (owner === null) output.warn(`No process runs ${id} now: they wait until one does.`)
  }
}
