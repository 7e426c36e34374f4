/** How a check of workflows looks: in a terminal, and as JSON. Values are there only if the report has them. */

import { toPlain } from '../events/index.ts'
import type { CheckFinding, CheckReport, DifferingEvent, DifferingPath } from '../index.ts'
import { printable } from '../printable.ts'
import { formatTime } from './event-format.ts'
import { toJsonText } from './json.ts'
import type { Output } from './output.ts'
import { plural } from './plural.ts'
import { wrap } from './wrap.ts'

export function printCheck({ types, findings }: CheckReport, output: Output): void {
  const counts = ['instances', 'events', 'snapshots', 'decisions', 'redacted', 'from snapshot', 'not checkable']
  output.table(
    [{ title: 'workflow', min: 8 }, ...counts.map((title) => ({ title, align: 'right' as const }))],
    types.map((one) => [
      one.type,
      ...[
        one.instances,
        one.events,
        one.snapshots,
        one.decisions,
        one.redacted,
        one.fromSnapshot,
        one.notCheckable,
      ].map(String),
    ]),
  )
  if (findings.length > 0) output.data('')
  for (const finding of findings) printFinding(finding, output)
  for (const { type, notCheckable, outdated } of types) {
    if (notCheckable > 0) {
      say(
        `${type}: ${plural(notCheckable, 'instance')} not checkable: the first events were removed by retention.`,
        output,
      )
    }
    if (outdated > 0) say(`${type}: ${plural(outdated, 'instance')} ${OUTDATED}`, output)
  }
  output.talk(`\n${findings.length === 0 ? 'Nothing was found.' : `${plural(findings.length, 'finding')}.`}`)
}

const OUTDATED =
  'not over, with a newest snapshot of another `snapshots.version`. This code needs the events before it, which ' +
  '`log.retention` does not keep.'

function say(text: string, output: Output): void {
  output.talk(`\n${wrap(printable(text), output.width).join('\n')}`)
}

function printFinding(finding: CheckFinding, { data, colors }: Output): void {
  const { type, id, version, about, message, input, events, paths } = finding
  data(`${colors.red(about)}  ${printable(`${type}/${id} at event ${version}: ${message}`)}`)
  if (input) {
    const of = input.id === null ? '' : ` with id ${input.id}`
    data(printable(`  input ${input.type ?? 'without a type'}${of}, decided ${formatTime(input.decidedAt)} UTC`))
  }
  for (const event of events) {
    data(printable(`  ${describeEvent(event)}`))
    for (const path of event.paths) data(printable(`    ${describePath(path)}`))
  }
  for (const path of paths) data(printable(`  ${describePath(path)}`))
}

function describeEvent({ version, position, recorded, now, paths }: DifferingEvent): string {
  const place = `event ${version}${position === null ? '' : ` at position ${position}`}`
  if (paths.length > 0) return `${place}, ${recorded}, has another payload now:`
  return `${place}: ${recorded ?? 'nothing'} is recorded, ${now ?? 'nothing'} comes of it now`
}

function describePath(differing: DifferingPath): string {
  const { path, recorded, now } = differing
  if (!('recorded' in differing || 'now' in differing)) return path
  const show = (value: unknown) => (value === undefined ? 'nothing' : toJsonText(value))
  return `${path}: ${show(recorded)} is recorded, ${show(now)} comes of it now`
}

/** Keys of ours are snake_case; those in values that differ are the user's, and stay. */
export function toCheckJson({ types, findings }: CheckReport): object {
  return {
    types: toPlain(types),
    findings: findings.map(({ events, paths, ...finding }) => ({
      ...(toPlain(finding) as object),
      events: events.map(({ paths: within, ...event }) => ({ ...(toPlain(event) as object), paths: within })),
      paths,
    })),
  }
}
