/** What needs attention, as sentences with the act beside them: cause first, then consequence. Pure. */
import type { DestinationState, LetterCause, OrphanedWork, Status, SubscriptionState } from '../index.ts'

export interface Need {
  readonly level: 'dead' | 'wait' | 'idle'
  readonly title: string
  readonly text: string
  /** The command that does the same as the act. */
  readonly command: string | null
  /** The request that the page sends when the act is chosen; null where there is only something to look at. */
  readonly act: { readonly label: string; readonly path: string; readonly body: Record<string, unknown> } | null
  /** The page that shows it. */
  readonly link: { readonly label: string; readonly to: string } | null
}

export interface Facts {
  readonly now: Date
  readonly subscriptions: readonly SubscriptionState[]
  readonly destinations: readonly DestinationState[]
  readonly causes: readonly LetterCause[]
  readonly orphans: readonly OrphanedWork[]
  readonly log: Status['log']
  readonly processes: Status['processes']
  /** Whether messages and reasons are quoted: they may hold parts of payloads. */
  readonly isQuoting: boolean
}

/** A transaction that holds readers back for longer than this is worth a word. */
const LONG_HOLD_MS = 10_000

/** The worst first. */
export function findNeeds(facts: Facts): Need[] {
  return [
    ...logNeeds(facts),
    ...destinationNeeds(facts),
    ...letterNeeds(facts),
    ...subscriptionNeeds(facts),
    ...orphanNeeds(facts),
  ]
}

function logNeeds({ log, processes, subscriptions }: Facts): Need[] {
  const needs: Need[] = []
  if (log?.problem != null) {
    needs.push({
      level: 'dead',
      title: 'The log cannot be read',
      text: log.problem,
      command: 'npx aftercommit doctor',
      act: null,
      link: { label: 'Database', to: 'database' },
    })
  }
  const [holder] = log?.holders ?? []
  if (holder !== undefined && (holder.ageSeconds ?? 0) * 1_000 > LONG_HOLD_MS) {
    const who = [holder.application, holder.pid === null ? holder.preparedGid : `pid ${holder.pid}`]
      .filter(Boolean)
      .join(', ')
    needs.push({
      level: 'wait',
      title: 'An open transaction holds readers back',
      text: `${who || 'A transaction'} took a position ${Math.round(holder.ageSeconds ?? 0)} s ago and has not ended. Readers wait for it; nothing is skipped.`,
      command: holder.pid === null ? null : `npx aftercommit unblock --pid ${holder.pid}`,
      act: null,
      link: { label: 'Database', to: 'database' },
    })
  }
  if (processes.length === 0 && subscriptions.length > 0) {
    needs.push({
      level: 'wait',
      title: 'No process runs',
      text: 'Events are kept, and nothing handles them until a process starts.',
      command: 'npx aftercommit start',
      act: null,
      link: null,
    })
  }
  return needs
}

function destinationNeeds({ destinations, now }: Facts): Need[] {
  return destinations.flatMap((one): Need[] => {
    const { destination, circuit, failures, openUntil, restingUntil, paused, who, reason, waiting } = one
    const behind =
      waiting === 0
        ? 'Nothing waits behind it now.'
        : `${count(waiting, 'delivery', 'deliveries')} ${waiting === 1 ? 'waits' : 'wait'} behind it; waiting costs no attempt.`
    const resume = {
      command: `npx aftercommit deliveries resume --destination '${destination}'`,
      link: { label: 'Deliveries', to: `deliveries?destination=${encodeURIComponent(destination)}` },
    }
    const act = (label: string) => ({ label, path: 'destinations/resume', body: { destination } })
    if (paused) {
      return [
        {
          level: 'idle',
          title: `${destination} is paused`,
          text: `By ${who ?? 'an operator'}${reason === null ? '' : `, “${reason}”`}. ${behind}`,
          ...resume,
          act: act('Resume'),
        },
      ]
    }
    if (circuit !== 'closed') {
      const probe =
        openUntil === null || openUntil <= now
          ? 'It is being probed.'
          : `Next probe in ${Math.ceil((openUntil.getTime() - now.getTime()) / 1_000)} s.`
      return [
        {
          level: 'wait',
          title: `${destination} does not answer well`,
          text: `Circuit ${circuit} after ${count(failures, 'failure', 'failures')} in a row. ${behind} ${probe}`,
          ...resume,
          act: act('Probe now'),
        },
      ]
    }
    if (restingUntil !== null) {
      return [
        {
          level: 'idle',
          title: `${destination} asked to be left alone`,
          text: `Until ${restingUntil.toISOString()}. ${behind}`,
          ...resume,
          act: act('Probe now'),
        },
      ]
    }
    return []
  })
}

function letterNeeds({ causes, isQuoting }: Facts): Need[] {
  if (causes.length === 0) return []
  const total = causes.reduce((sum, one) => sum + one.count, 0)
  const [first] = causes
  const parked = causes.reduce((sum, one) => sum + one.parkedKeys, 0)
  const same =
    causes.length === 1 || first!.count === total ? 'all of one cause' : `${first!.count} of them with one cause`
  return [
    {
      level: 'dead',
      title: total === 1 ? 'One dead letter' : `${total >= 10_000 ? 'More than 10,000' : total} dead letters, ${same}`,
      text: `${first!.owner}: ${first!.code}${first!.message === '' || !isQuoting ? '' : ` “${first!.message.slice(0, 160)}”`}.${parked === 0 ? '' : ` ${count(parked, 'key is', 'keys are')} parked, and later events wait behind them.`}`,
      command: `npx aftercommit dlq redrive --all-matching --owner ${first!.owner}`,
      act: null,
      link: { label: 'Look at causes', to: 'dead-letters' },
    },
  ]
}

function subscriptionNeeds({ subscriptions, isQuoting }: Facts): Need[] {
  return subscriptions.flatMap(({ id, status, reason, lag }): Need[] => {
    if (status === 'active') return []
    const behind = lag === 0n ? 'It is not behind.' : `${lag} positions are behind it.`
    const text = `${reason === null || !isQuoting ? '' : `${reason}. `}${behind}`
    const link = { label: 'Subscriptions', to: 'subscriptions' }
    if (status === 'failing')
      return [{ level: 'dead', title: `${id} is failing`, text, command: null, act: null, link }]
    const act = { label: 'Resume', path: `subscriptions/${encodeURIComponent(id)}/resume`, body: {} }
    const level = status === 'stopped' ? 'dead' : 'idle'
    return [
      { level, title: `${id} is ${status}`, text, command: `npx aftercommit subscriptions resume ${id}`, act, link },
    ]
  })
}

function orphanNeeds({ orphans }: Facts): Need[] {
  return orphans.map(({ kind, name, count: waiting }) => ({
    level: 'wait',
    title: `No process can do the ${kind} ${name}`,
    text: `${count(waiting, 'delivery waits', 'deliveries wait')} for a process that registers it.`,
    command: `npx aftercommit deliveries list --name ${name}`,
    act: null,
    link: { label: 'Deliveries', to: `deliveries?name=${encodeURIComponent(name)}` },
  }))
}

/** One sentence that says how it is. */
export function verdictOf(needs: readonly Need[]): string {
  const [first, ...rest] = needs
  if (first === undefined) return 'Everything that was committed is handled or on its way. Nothing needs a decision.'
  const more =
    rest.length === 0
      ? ''
      : ` ${rest.length === 1 ? 'One more thing needs' : `${rest.length} more things need`} attention.`
  return `${first.title}. ${first.text}${more}`
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`
}
