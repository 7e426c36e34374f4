import { type Aftercommit, AftercommitError, type AftercommitEvent } from '../index.ts'

/** By id, else by position. */
export async function findEvent(ac: Aftercommit, id: string): Promise<AftercommitEvent> {
  const event = (await ac.log.get(id)) ?? (/^\d{1,18}$/.test(id) ? await atPosition(ac, BigInt(id)) : undefined)
  if (event) return event
  throw new AftercommitError(
    'EVENT_NOT_FOUND',
    `There is no event with the id or position ${JSON.stringify(id)}: it was never committed, or retention has removed it.`,
  )
}

async function atPosition(ac: Aftercommit, position: bigint): Promise<AftercommitEvent | undefined> {
  if (position === 0n) return undefined
  const [event] = await ac.log.read({ from: position - 1n, limit: 1 })
  return event?.position === position ? event : undefined
}
