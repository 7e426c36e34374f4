/** How a backtest looks in a terminal and as JSON. What would be sent is shown: it was asked for. */

import { toPlain } from '../events/index.ts'
import type { BacktestObserver, BacktestReport } from '../observers/index.ts'
import { printable } from '../printable.ts'
import { formatTime } from './event-format.ts'
import type { Output } from './output.ts'
import { plural } from './plural.ts'
import { previewLines } from './preview-format.ts'
import type { Column } from './table.ts'
import { wrap } from './wrap.ts'

const COLUMNS: readonly Column[] = [
  { title: 'observer', min: 10 },
  { title: 'events', align: 'right' },
  { title: 'matched', align: 'right' },
  { title: 'not met', align: 'right' },
  { title: 'absent', align: 'right' },
  { title: 'errors', align: 'right' },
  { title: 'would send', align: 'right' },
]

export function printBacktest(report: BacktestReport, output: Output): void {
  const { observers, events, since, until, isComplete } = report
  const span = `${formatTime(since)} to ${until === null ? 'now' : formatTime(until)}`
  if (observers.length > 0) {
    output.table(COLUMNS, observers.map(toRow))
    output.data('')
  }
  output.data(`Read ${plural(events, 'event')}, ${span}${isComplete ? '' : '; stopped before the end'}. Sent nothing.`)
  for (const observer of observers) printObserver(observer, output)
  if (!report.ok) output.talk('\nSome rules failed for some events. In force they would leave dead letters.')
}

function toRow(one: BacktestObserver): string[] {
  const sum = (of: 'wouldSend' | 'errors') => one.actions.reduce((total, action) => total + action[of], 0)
  const { events, matched, conditionFalse, fieldAbsent, conditionErrors } = one
  const errors = conditionErrors + sum('errors')
  return [one.observer, ...[events, matched, conditionFalse, fieldAbsent, errors, sum('wouldSend')].map(String)]
}

function printObserver(one: BacktestObserver, output: Output): void {
  const { colors, data } = output
  if (one.samples.length + one.problems.length + one.absentFields.length === 0) return
  data(`\n${colors.bold(printable(one.observer))}`)
  for (const { field, count } of one.absentFields) {
    data(`  ${colors.yellow('absent')}  ${printable(field)}, in ${plural(count, 'event')}`)
  }
  for (const { eventId, action, code, message } of one.problems) {
    const where = action === null ? 'condition' : `action ${action}`
    const text = `${code === null ? '' : `${code} `}${message.split('\n')[0]}`
    data(`  ${colors.red('failed')}  ${printable(`${where}, event ${eventId}`)}`)
    for (const line of wrap(printable(text), output.width - 10)) data(`          ${line}`)
  }
  for (const { eventId, previews } of one.samples) {
    data(`  ${colors.green('sample')}  event ${printable(eventId)}`)
    for (const { action, destination, content } of previews) {
      data(`          ${printable(action)}${destination === null ? '' : ` → ${printable(destination)}`}`)
      for (const line of previewLines(content)) data(`            ${line}`)
    }
  }
}

/** The keys of what would be sent are the user's. */
export function toBacktestJson({ observers, ...report }: BacktestReport): object {
  return {
    ...(toPlain(report) as object),
    observers: observers.map(({ samples, ...one }) => ({
      ...(toPlain(one) as object),
      samples: samples.map(({ eventId, position, previews }) => ({
        event_id: eventId,
        position: String(position),
        previews: previews.map(({ actionType, ...preview }) => ({ ...preview, action_type: actionType })),
      })),
    })),
  }
}
