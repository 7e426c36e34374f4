/** What is not over, why, and the command that moves it: one item for each cause. Pure. */
import type { OpenItem, Reaction, Receipt } from './receipt.ts'

type Parts = Pick<Receipt, 'event' | 'subscriptions' | 'observers' | 'work'>

interface Open {
  readonly name: string
  readonly subscription: string | null
  readonly destination: string | null
  readonly reaction: Reaction
}

/** Dead letters first: nothing moves them but a command. Then what is held back, then what waits for its time. */
export function findOpen(parts: Parts): OpenItem[] {
  const open = openOf(parts)
  const dead = open.filter(({ reaction }) => reaction.state === 'dead')
  const byCause = group(dead, causeOf)
  const deadItems = [...byCause.values()].map((together): OpenItem => {
    const names = together.map(({ name }) => name)
    const { error, attempts } = together[0]!.reaction
    const ids = together.map(({ reaction }) => String(reaction.deadLetter))
    return {
      what: `${list(names)} ${names.length === 1 ? 'is a dead letter' : 'are dead letters'}`,
      why: `${error === null ? 'It failed' : `${error.code ?? error.name}: ${error.message}`} (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}). Mend the cause first.`,
      command: `npx aftercommit dlq redrive ${ids.join(' ')}`,
    }
  })
  const waiting = open.filter(({ reaction }) => !['dead', 'done', 'discarded', 'running'].includes(reaction.state))
  const byReason = group(waiting, ({ reaction, destination }) => `${destination}\n${reaction.waitsFor}`)
  const waitingItems = [...byReason.values()].map((together): OpenItem => {
    const names = together.map(({ name }) => name)
    const first = together[0]!
    return {
      what: `${list(names)} ${names.length === 1 ? 'waits' : 'wait'}`,
      why: sentence(first.reaction.waitsFor ?? 'nothing more is known'),
      command: commandFor(first),
    }
  })
  return [...deadItems, ...waitingItems.sort((a, b) => Number(a.command === null) - Number(b.command === null))]
}

function openOf({ subscriptions, observers, work }: Parts): Open[] {
  return [
    ...subscriptions.map((one) => ({ name: one.id, subscription: one.id, destination: null, reaction: one })),
    ...observers.flatMap(({ observer, actions }) =>
      actions.map((action) => ({
        name: `${observer}/${action.name}`,
        subscription: null,
        destination: action.destination,
        reaction: action,
      })),
    ),
    ...work.map((one) => ({
      name: `${one.kind} ${one.name} of ${one.workflow.type}/${one.workflow.id}`,
      subscription: null,
      destination: null,
      reaction: one,
    })),
  ].filter(({ reaction }) => isOpen(reaction))
}

/** Not over: a dead letter counts as open until an operator redrives or discards it. */
export function isOpen({ state }: Reaction): boolean {
  return !OVER.has(state)
}

const OVER: ReadonlySet<Reaction['state']> = new Set(['done', 'discarded', 'skipped', 'unrecorded'])

function commandFor({ subscription, destination, reaction }: Open): string | null {
  const why = reaction.waitsFor ?? ''
  if (subscription !== null) {
    if (reaction.state === 'parked') return `npx aftercommit dlq list --owner ${subscription} --status dead`
    if (/ is (paused|stopped)/.test(why)) return `npx aftercommit subscriptions resume ${subscription}`
    return null
  }
  if (destination !== null && /circuit|paused|left alone/.test(why)) {
    return `npx aftercommit deliveries resume --destination '${destination}'`
  }
  if (reaction.state === 'paused') return `npx aftercommit deliveries show ${reaction.delivery}`
  if (reaction.state === 'retrying' || reaction.state === 'scheduled') {
    return reaction.delivery === null ? null : `npx aftercommit deliveries retry ${reaction.delivery}`
  }
  return null
}

function causeOf({ reaction: { error } }: Open): string {
  return error === null ? '' : `${error.code ?? error.name}\n${error.message}`
}

function group<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const found = groups.get(key)
    if (found) found.push(item)
    else groups.set(key, [item])
  }
  return groups
}

function list(names: readonly string[]): string {
  if (names.length <= 3) return names.join(', ')
  return `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
