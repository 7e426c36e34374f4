/** How an explanation looks in a terminal: who acted and how it went, then who did not and why. */
import type { EventExplanation, ExplainedAction, ExplainedObserver } from '../observers/index.ts'
import { printable } from '../printable.ts'
import { formatDuration } from '../runtime/index.ts'
import { formatDue } from './delivery-format.ts'
import { formatError } from './error-format.ts'
import { formatAggregate, formatTime } from './event-format.ts'
import { printFields } from './fields.ts'
import { toJsonText } from './json.ts'
import type { Colors, Output } from './output.ts'
import { plural } from './plural.ts'
import { previewLines } from './preview-format.ts'
import { wrap } from './wrap.ts'

/** `all`: those that are about other events get a place of their own too. */
export function printExplanation(explanation: EventExplanation, { all }: { all: boolean }, output: Output): void {
  const { event, checkpoint, letter, observers } = explanation
  const { colors, data } = output
  data(colors.bold(printable(event.type)))
  printFields(
    [
      ['id', event.id],
      ['position', String(event.position)],
      ['aggregate', event.aggregateType === null ? null : formatAggregate(event)],
      ['recorded', `${formatTime(event.recordedAt)} UTC`],
      ['observers', describeCheckpoint(checkpoint, event.position)],
      ['dead letter', letter === null ? null : `${letter.id}, ${letter.status}: ${formatError(letter.error)}`],
    ],
    output,
  )
  const others = all ? [] : observers.filter(({ verdict }) => verdict === 'type')
  for (const observer of observers) if (!others.includes(observer)) printObserver(observer, output)
  if (others.length > 0) {
    const names = others.map(({ observer }) => observer).join(', ')
    data('')
    const text = `${plural(others.length, 'observer')} of other types: ${names}. --all tells more.`
    for (const line of wrap(printable(text), output.width)) data(colors.dim(line))
  }
  if (observers.length === 0) output.talk('\nNo observer was in force, and none is.')
}

function describeCheckpoint(checkpoint: bigint | null, position: bigint): string {
  if (checkpoint === null) return 'none was ever started on this database'
  return checkpoint >= position ? 'have handled it' : `have come to position ${checkpoint}, not to this event`
}

const MARKS: Readonly<Record<ExplainedObserver['verdict'], (colors: Colors) => string>> = {
  matched: ({ green }) => green('✔ acts'),
  condition_error: ({ red }) => red('✖ fails'),
  unreadable: ({ red }) => red('✖ cannot'),
  field_absent: ({ yellow }) => yellow('○ does not act'),
  condition_false: ({ yellow }) => yellow('○ does not act'),
  not_in_force: ({ dim }) => dim('○ was not there'),
  entity: ({ dim }) => dim('○ does not act'),
  type: ({ dim }) => dim('○ does not act'),
}

const SINCE: Readonly<Record<ExplainedObserver['since'], string>> = {
  same: '',
  changed: ', changed since',
  removed: ', removed since',
  added: '',
}

function printObserver(one: ExplainedObserver, output: Output): void {
  const { colors, data } = output
  const version = one.version === null ? '' : colors.dim(`  version ${one.version}${SINCE[one.since]}`)
  data(`\n${colors.bold(printable(one.observer))}  ${MARKS[one.verdict](colors)}${version}`)
  for (const line of one.reason.split('\n').flatMap((text) => wrap(printable(text), output.width - 2))) {
    data(`  ${line}`)
  }
  if (one.parts.length > 0) {
    data('')
    output.table(
      [
        { title: 'condition', min: 16 },
        { title: 'value', min: 12 },
      ],
      one.parts.map((part) => [part.source, describePart(part)]),
      '  ',
    )
  }
  for (const action of one.actions) {
    if (action.state !== 'not_asked' || action.preview !== null) printAction(action, output)
  }
}

function describePart({ value, absent, error }: ExplainedObserver['parts'][number]): string {
  if (error !== undefined) return `cannot be evaluated: ${error}`
  if (absent !== undefined) return `unknown: ${absent} is absent`
  if (value === undefined) return 'absent'
  return value instanceof Date ? value.toISOString() : toJsonText(value)
}

const STATES: Readonly<Record<ExplainedAction['state'], string>> = {
  done: 'done',
  waiting: 'waits for a worker',
  running: 'is being done',
  scheduled: 'waits for its time',
  retrying: 'failed and is tried again',
  paused: 'is paused',
  queued: 'waits for the action before it',
  dead: 'is a dead letter',
  redriving: 'is a dead letter, and about to be tried again',
  discarded: 'was a dead letter, and was given up',
  given_up: 'failed and was given up',
  not_yet: 'was not begun yet',
  not_asked: 'was not asked',
  unrecorded: 'has no record: successes are not recorded, or it was more than 7 days ago',
}

function printAction(action: ExplainedAction, output: Output): void {
  const { colors, data } = output
  const { name, type, state, attempts, delivery, letter, preview } = action
  const title = name === type ? name : `${name} (${type})`
  data(`\n  ${colors.bold(printable(title))}  ${STATES[state]}`)
  if (attempts.length > 0) {
    output.table(
      [
        { title: 'attempt', align: 'right' },
        { title: 'at' },
        { title: 'outcome' },
        { title: 'took', align: 'right' },
        { title: 'answer', min: 16 },
      ],
      attempts.map((one) => [
        String(one.attempt),
        formatTime(one.at),
        one.outcome,
        formatDuration(one.durationMs),
        describeAnswer(one),
      ]),
      '    ',
    )
  }
  const say = (label: string, text: string) => {
    const [first = '', ...rest] = wrap(printable(text), output.width - label.length - 6)
    data(`    ${colors.dim(label)}  ${first}`)
    for (const line of rest) data(`${' '.repeat(label.length + 6)}${line}`)
  }
  if (delivery !== null) {
    const error = delivery.error === null ? '' : `; last error ${formatError(delivery.error)}`
    say(
      'next',
      `delivery ${delivery.id}, due ${formatDue(delivery.runAt)}, ${plural(delivery.attempts, 'attempt')} so far${error}`,
    )
  }
  if (letter !== null) say('dead letter', `${letter.id}, ${letter.status}: ${formatError(letter.error)}`)
  if (preview !== null) printPreview(preview, say, output)
}

function describeAnswer({ message, request, response }: ExplainedAction['attempts'][number]): string {
  const said = response === null || response.body === '' ? '' : `, "${response.body}"`
  const sent = request === null ? '' : `; ${request.method} ${request.url}`
  return `${message}${said}${sent}`
}

function printPreview(
  preview: NonNullable<ExplainedAction['preview']>,
  say: (label: string, text: string) => void,
  { data }: Output,
): void {
  if ('error' in preview) {
    say('would fail now', preview.error)
    return
  }
  say('would send now', preview.destination ?? 'nothing that leaves the process')
  for (const line of previewLines(preview.content)) data(`      ${line}`)
}
