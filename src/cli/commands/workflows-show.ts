import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { Aftercommit, AftercommitEvent, InstanceSummary, TimerSummary, Workflow } from '../../index.ts'
import { printable } from '../../printable.ts'
import { toAggregate } from '../arguments.ts'
import { formatPayload, formatTime, toBrief } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { UsageError } from '../failure.ts'
import { printFields, printJson } from '../fields.ts'
import { findInstance } from '../find-instance.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { statusOf, TIMER_COLUMNS, toTimerRow } from '../workflow-format.ts'
import { importWorkflows, WORKFLOWS_FLAGS, WORKFLOWS_HELP } from '../workflow-module.ts'

interface Options {
  readonly import?: string
  readonly payload?: boolean
  readonly diagram?: 'mermaid' | 'dot'
}

export function define(command: Command): void {
  command
    .argument('<type/id>', 'the instance, like fulfilment/42', toAggregate)
    .addOption(new Option(WORKFLOWS_FLAGS, WORKFLOWS_HELP))
    .option('--payload', 'print the payloads of its events too')
    .addOption(new Option('--diagram <language>', 'print its way as a diagram only').choices(['mermaid', 'dot']))
    .addHelpText(
      'after',
      `
Its state and a diagram take the code of the workflow: name the module with --import. A diagram shows the states that this
instance went through; what never happened to it is not drawn.`,
    )
    .action((instance: InstanceRef) => runCommand<Options>(command, (invocation) => show(instance, invocation)))
}

type InstanceRef = ReturnType<typeof toAggregate>

/** What is shown of a history; the rest is in the log. */
const MOST_EVENTS = 1_000

async function show(instance: InstanceRef, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  if (options.diagram && options.import === undefined) {
    throw new UsageError('A diagram takes the code of the workflow. Name its module: --import <module>')
  }
  const ac = await open()
  const module = options.import === undefined ? undefined : await importWorkflows(options.import, ac)
  const workflow = module?.get(instance.type)
  const summary = await findInstance(ac, instance)
  if (options.diagram && workflow) {
    output.data((await draw(ac, workflow, summary, options.diagram)).trimEnd())
    return EXIT.ok
  }
  const [events, timers, state] = await Promise.all([
    ac.log.stream(instance, { limit: MOST_EVENTS }),
    ac.workflows.timers({ ...instance, limit: MOST_EVENTS }),
    workflow && ac.workflows.query(workflow, instance.id),
  ])
  const { payload = false } = options
  if (output.json) {
    output.document({
      ...(toPlain(summary) as object),
      ...(state && { state: state.state }),
      timers: timers.map(toPlain),
      events: events.map((event) => ({ version: event.version, ...toBrief(event, { payload }) })),
    })
  } else print({ summary, events, timers, state, payload }, output)
  return EXIT.ok
}

async function draw(
  ac: Aftercommit,
  workflow: Workflow,
  { type, id, version, generation }: InstanceSummary,
  language: 'mermaid' | 'dot',
): Promise<string> {
  if (generation > 1) {
    throw new UsageError(`${type}/${id} began anew ${plural(generation - 1, 'time')}; only a single life can be drawn.`)
  }
  const { retraceWorkflow, toDot, toMermaid } = await import('../../index.ts')
  const events: unknown[] = []
  for (let from = 1; from <= version; from += MOST_EVENTS) {
    const page = await ac.workflows.history(workflow, id, { from, limit: MOST_EVENTS })
    for (const { payload } of page) events.push(payload)
  }
  const machine = retraceWorkflow(workflow, [events])
  return language === 'dot' ? toDot(machine) : toMermaid(machine)
}

interface Shown {
  readonly summary: InstanceSummary
  readonly events: readonly AftercommitEvent[]
  readonly timers: readonly TimerSummary[]
  readonly state: { readonly state: unknown } | undefined
  readonly payload: boolean
}

function print({ summary, events, timers, state, payload }: Shown, output: Output): void {
  const { type, id, version, generation, uniqueKey, createdAt, lastEventAt, completedAt } = summary
  output.data(output.colors.bold(printable(`${type}/${id}`)))
  printFields(
    [
      ['status', statusOf(summary)],
      ['events', String(version)],
      ['life', generation === 1 ? null : String(generation)],
      ['unique key', uniqueKey],
      ['begun', formatTime(createdAt)],
      ['last event', formatTime(lastEventAt)],
      ['completed', completedAt === null ? null : formatTime(completedAt)],
    ],
    output,
  )
  if (state) printJson('state', state.state, output)
  if (timers.length > 0) {
    output.data(`\n${output.colors.bold('timers')}`)
    output.table(TIMER_COLUMNS, timers.map(toTimerRow), '  ')
  }
  output.data(`\n${output.colors.bold('events')}`)
  const columns = [
    { title: 'version', align: 'right' as const },
    { title: 'recorded' },
    { title: 'type', min: 12 },
    ...(payload ? [{ title: 'payload', min: 10 }] : []),
  ]
  output.table(
    columns,
    events.map((event) => [
      String(event.version),
      formatTime(event.recordedAt),
      event.type,
      ...(payload ? [formatPayload(event)] : []),
    ]),
    '  ',
  )
  if (version > events.length) output.talk(`\nOnly the first ${events.length} of ${version} events are shown.`)
}
