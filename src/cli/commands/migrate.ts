import { type Command, Option } from 'commander'
import { type Aftercommit, type CaptureStep, defineEvents, type MigrateRequest } from '../../index.ts'
import { printable } from '../../printable.ts'
import { collect } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'

interface Options {
  readonly grantEmit?: string[]
  readonly grantRun?: string[]
  readonly grantMonitor?: string[]
  readonly grantRead?: string[]
  readonly stream?: string[]
  readonly adoptStreams?: boolean
  readonly dryRun?: boolean
  readonly sql?: boolean
}

export function define(command: Command): void {
  command
    .option('--grant-emit <role...>', 'roles that may emit, and nothing else')
    .option('--grant-run <role...>', 'roles that processes run as: emit, read, keep their own marks')
    .option(
      '--grant-monitor <role...>',
      'roles that see sessions of others, to say what holds the log back; needs a superuser',
    )
    .option('--grant-read <role...>', 'roles that may read the events of one tenant at a time')
    .addOption(new Option('--stream <type...>', 'aggregate types to keep as streams').argParser(collect))
    .option('--adopt-streams', 'take over plain events of those types that exist already')
    .option('--dry-run', 'list what would be applied, and do nothing')
    .option('--sql', 'print the SQL that would be run, and do nothing')
    .action(() => runCommand<Options>(command, migrate))
}

async function migrate(invocation: Invocation<Options>): Promise<ExitCode> {
  const { options, output, signal } = invocation
  const { stream } = options
  const ac = await invocation.open(stream === undefined ? {} : { events: defineEvents({}, { streams: stream }) })
  if (options.dryRun) return listPending(ac, output)
  if (options.sql) {
    const { grantEmit = [], grantRun = [] } = options
    const script = [(await ac.migrationScript({ grantEmit, grantRun })).trimEnd(), await captureScript(ac)]
      .join('\n')
      .trim()
    if (script === '') output.talk('The schema is up to date; there is no SQL to run.')
    else output.data(script)
    return EXIT.ok
  }
  const { green } = output.talkColors
  const { applied, placed, captured, version } = await ac.migrate({
    signal,
    adoptStreams: options.adoptStreams ?? false,
    onCapture: (step) => tellCapture(step, output),
    onStep(step) {
      if (step.kind === 'applied') output.talk(`${green('✓')} ${step.migration}`)
      else if (step.kind === 'placed') output.talk(`${green('✓')} ${countFiles(step.files)}`)
      else if (step.kind === 'waiting') output.talk('… another migrator is at work; waiting for it')
      else output.talk(`… ${step.migration} waits for the locks of other sessions (attempt ${step.attempt})`)
    },
  })
  const grants = await grantAll(ac, options, output)
  const failed = grants.filter(({ error }) => error !== null)
  const left = captured.filter(({ outcome }) => outcome === 'left')
  const isNew = applied.length > 0 || placed.length > 0 || captured.length > left.length
  if (output.json) output.document({ applied, placed, captured, version, grants })
  else output.data(`Schema is at version ${version}${isNew ? '.' : '; nothing to do.'}`)
  return failed.length > 0 || left.length > 0 ? EXIT.partial : EXIT.ok
}

function tellCapture({ table, reason, outcome, problem, sql }: CaptureStep, output: Output): void {
  const { green, red } = output.talkColors
  if (outcome === 'done') {
    output.talk(`${green('✓')} table ${printable(table)} is captured (${reason})`)
    return
  }
  output.warn(`${red('✗')} table ${printable(table)} is not captured: ${problem}`)
  if (sql !== null) output.warn(`  as its owner: ${printable(sql)}`)
}

/** Empty while the schema itself is behind: which tables are captured is not known there. */
async function captureScript(ac: Aftercommit): Promise<string> {
  const { schema } = await ac.status()
  if (schema.pending.length > 0 || schema.pendingFiles.length > 0) return ''
  return (await ac.capture.pending()).flatMap(({ sql }) => (sql === null ? [] : [`${sql};`])).join('\n')
}

async function listPending(ac: Aftercommit, output: Output): Promise<ExitCode> {
  const { schema } = await ac.status()
  const { version, latest, pending, pendingFiles } = schema
  const isUpToDate = pending.length === 0 && pendingFiles.length === 0
  const capture = isUpToDate ? await ac.capture.pending() : []
  const lines = [
    ...pending,
    ...(pendingFiles.length === 0 ? [] : [countFiles(pendingFiles)]),
    ...capture.map(({ table, reason }) => `capture of table ${printable(table)} (${reason})`),
  ]
  if (output.json) output.document({ version, latest, pending, pendingFiles, capture })
  else if (lines.length === 0) output.data(`Schema is at version ${version}; nothing to do.`)
  else output.data(['Would be applied:', ...lines.map((line) => `  ${line}`)].join('\n'))
  return EXIT.ok
}

function countFiles(files: readonly string[]): string {
  return `${plural(files.length, 'file')} of sql/: functions, triggers and views`
}

interface Grant {
  readonly right: 'emit' | 'run' | 'monitor' | 'read'
  readonly role: string
  readonly error: string | null
}

/** Role by role: one that does not exist must not keep the others from their rights. */
async function grantAll(
  ac: Aftercommit,
  { grantEmit = [], grantRun = [], grantMonitor = [], grantRead = [] }: Options,
  output: Output,
): Promise<Grant[]> {
  const wanted = [
    ...grantEmit.map((role) => ({ right: 'emit' as const, role, request: { grantEmit: [role] } })),
    ...grantRun.map((role) => ({ right: 'run' as const, role, request: { grantRun: [role] } })),
    ...grantMonitor.map((role) => ({ right: 'monitor' as const, role, request: { grantMonitor: [role] } })),
    ...grantRead.map((role) => ({ right: 'read' as const, role, request: { grantRead: [role] } })),
  ]
  const grants: Grant[] = []
  for (const { right, role, request } of wanted) {
    const error = await grantOne(ac, request)
    const { green, red } = output.talkColors
    if (error === null) output.talk(`${green('✓')} role ${role} may ${right}`)
    else output.warn(`${red('✗')} role ${role} was not given its rights: ${error}`)
    grants.push({ right, role, error })
  }
  return grants
}

async function grantOne(ac: Aftercommit, request: MigrateRequest): Promise<string | null> {
  try {
    await ac.migrate(request)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
