/** How a receipt looks in a terminal: the sentence, what is open and its command, then everything in the order of the data. */
import { printable } from '../printable.ts'
import type {
  ActionPart,
  ObserverPart,
  Reaction,
  ReactionState,
  Receipt,
  SubscriptionPart,
  WorkPart,
} from '../receipt/index.ts'
import { formatDuration } from '../runtime/index.ts'
import { formatDue } from './delivery-format.ts'
import { formatError } from './error-format.ts'
import { formatAggregate, formatTime } from './event-format.ts'
import type { Colors, Output } from './output.ts'
import { plural } from './plural.ts'
import { wrap } from './wrap.ts'

export function printReceipt(receipt: Receipt, { all }: { all: boolean }, output: Output): void {
  const { event, sentence, open, subscriptions, observers, work, caused, notes } = receipt
  const { colors, data } = output
  data(
    `${colors.bold(printable(event.type))}  ${printable(formatAggregate(event))}  ${colors.dim(printable(event.id))}`,
  )
  data(colors.dim(`position ${event.position}, recorded ${formatTime(event.recordedAt)} UTC`))
  paragraph(`\n${sentence}`, '', output)
  for (const { what, why, command } of open) {
    data(`\n${colors.yellow('▲')} ${colors.bold(printable(what))}`)
    paragraph(why, '  ', output)
    if (command !== null) data(`  ${colors.cyan(printable(command))}`)
  }
  section('Subscriptions', subscriptions, (one) => printSubscription(one, receipt, output), output)
  const shown = observers.filter(
    ({ verdict, actions }) => all || actions.length > 0 || (verdict !== 'type' && verdict !== 'entity'),
  )
  section('Observers', shown, (one) => printObserver(one, receipt, output), output)
  if (shown.length < observers.length) {
    data(colors.dim(`  ${plural(observers.length - shown.length, 'observer')} of other types; --all lists them`))
  }
  section('Workflows', work, (one) => printWork(one, receipt, output), output)
  section(
    'Caused',
    caused,
    (one) => {
      const aggregate = one.aggregateType === null ? '' : `${one.aggregateType}/${one.aggregateId}`
      data(
        `  ${'  '.repeat(one.depth - 1)}${printable(one.type)}  ${printable(aggregate)}  ${colors.dim(`${one.position}, ${since(one.recordedAt, receipt)}`)}`,
      )
    },
    output,
  )
  if (!receipt.complete)
    data(colors.dim(`  … more events may follow; it was searched up to position ${receipt.searchedTo}`))
  data('')
  for (const note of notes) paragraph(note, '', output, colors.dim)
}

function section<T>(title: string, items: readonly T[], print: (item: T) => void, { colors, data }: Output): void {
  if (items.length === 0) return
  data(`\n${colors.bold(title)}`)
  for (const item of items) print(item)
}

function printSubscription(one: SubscriptionPart, receipt: Receipt, output: Output): void {
  output.data(`  ${mark(one.state, output.colors)} ${printable(one.id)}  ${describe(one, receipt, output.colors)}`)
  printWhy(one, output)
}

function printObserver(
  { observer, verdict, reason, parts, actions }: ObserverPart,
  receipt: Receipt,
  output: Output,
): void {
  const { colors, data } = output
  if (verdict !== 'matched')
    data(`  ${colors.dim('–')} ${printable(observer)}  ${colors.dim(printable(reason.split('\n')[0]!))}`)
  if (verdict !== 'matched') {
    for (const { source, value } of parts) {
      data(`      ${printable(source)}  ${colors.dim(`is ${printable(JSON.stringify(value) ?? 'absent')}`)}`)
    }
  }
  for (const action of actions) printAction(observer, action, receipt, output)
}

function printAction(observer: string, action: ActionPart, receipt: Receipt, output: Output): void {
  const { colors, data } = output
  const { name, type, destination, history } = action
  const what = `${observer}/${name}${name === type ? '' : ` (${type})`}${destination === null ? '' : ` to ${destination}`}`
  data(`  ${mark(action.state, colors)} ${printable(what)}  ${describe(action, receipt, colors)}`)
  for (const one of history) {
    const code = one.code === null ? '' : `${one.code} `
    const text = one.outcome === 'success' ? one.message : `${code}${one.message}`
    data(
      colors.dim(
        `      ${one.attempt}. ${since(one.at, receipt)}, ${formatDuration(one.durationMs)}: ${printable(text.split('\n')[0]!)}`,
      ),
    )
  }
  printWhy(action, output)
}

function printWork(one: WorkPart, receipt: Receipt, output: Output): void {
  const what = `${one.workflow.type}/${one.workflow.id} ${one.kind} ${one.name}`
  output.data(`  ${mark(one.state, output.colors)} ${printable(what)}  ${describe(one, receipt, output.colors)}`)
  printWhy(one, output)
}

function printWhy({ waitsFor, error, state }: Reaction, output: Output): void {
  if (state !== 'done' && error !== null) paragraph(formatError(error), '      ', output)
  if (waitsFor !== null && state !== 'dead') paragraph(waitsFor, '      ', output, output.colors.dim)
}

const WORDS: Readonly<Record<ReactionState, string>> = {
  done: 'done',
  running: 'is running',
  waiting: 'waits',
  scheduled: 'is set for later',
  retrying: 'failed and is tried again',
  paused: 'is paused',
  queued: 'waits for the action before it',
  parked: 'is parked',
  dead: 'is a dead letter',
  redriving: 'is being redriven',
  discarded: 'was given up',
  not_yet: 'was not begun yet',
  skipped: 'was skipped by an operator',
  unrecorded: 'has no record',
}

function describe(
  { state, at, attempts, deadLetter, dueAt, derived }: Reaction,
  receipt: Receipt,
  colors: Colors,
): string {
  const details = [
    derived && state === 'done' ? 'by its checkpoint' : '',
    attempts > 1 ? `${attempts} attempts` : '',
    at !== null && state === 'done' ? since(at, receipt) : '',
    dueAt !== null ? formatDue(dueAt) : '',
    deadLetter !== null ? `dead letter ${deadLetter}` : '',
  ].filter((text) => text !== '')
  return `${WORDS[state]}${details.length === 0 ? '' : colors.dim(`  ${details.join(', ')}`)}`
}

function mark(state: ReactionState, colors: Colors): string {
  if (state === 'done') return colors.green('✔')
  if (state === 'dead') return colors.red('✖')
  if (state === 'running') return colors.blue('●')
  return state === 'discarded' || state === 'skipped' || state === 'unrecorded' ? colors.dim('–') : colors.yellow('○')
}

/** `+212 ms`, since the event was recorded. */
function since(at: Date, { event }: Receipt): string {
  return `+${formatDuration(Math.max(0, at.getTime() - event.recordedAt.getTime()))}`
}

function paragraph(
  text: string,
  indent: string,
  output: Output,
  style: (text: string) => string = (plain) => plain,
): void {
  for (const line of text.split('\n').flatMap((one) => wrap(printable(one), output.width - indent.length))) {
    output.data(style(`${indent}${line}`))
  }
}
