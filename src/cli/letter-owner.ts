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
