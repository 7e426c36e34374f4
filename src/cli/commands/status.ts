import type { Command } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { Status } from '../../index.ts'
import { printable } from '../../printable.ts'
import { formatDuration } from '../../runtime/index.ts'
import { type DeliveryStatus, describeStates, printDeliveryTrouble, readDeliveryStatus } from '../delivery-status.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { HOLDER_COLUMNS, toHolderRow } from '../holder-table.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'

export function define(command: Command): void {
  command.action(() => runCommand<object>(command, status))
}

async function status({ open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const found = await ac.status()
  const deliveries = found.log === null ? null : await readDeliveryStatus(ac)
  if (output.json) output.document(toPlain({ ...found, deliveries }))
  else printStatus(found, deliveries, output)
  return EXIT.ok
}

function printStatus(status: Status, deliveries: DeliveryStatus | null, output: Output): void {
  const { server, schema, log, partitions } = status
  const line = (name: string, text: string) => output.data(`${output.colors.bold(name.padEnd(10))}  ${printable(text)}`)
  const place = server.host.startsWith('/') ? server.host : `${server.host}:${server.port}`
  line('Database', `PostgreSQL ${server.version} at ${place}/${server.database}${server.standby ? ', a standby' : ''}`)
  line('Schema', `${schema.name}, ${describeSchema(schema)}`)
  if (log === null || deliveries === null) return
  const waiting =
    log.lag === 0 ? 'all of it final' : `${count(log.lag, 'event')}${log.lag < 10_000 ? '' : ' or more'} not final yet`
  line('Log', `head ${log.head}, frontier ${log.frontier}: ${waiting}`)
  line('Epoch', String(log.epoch))
  line('Wake', log.wake)
  const bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0)
  line('Size', `${formatBytes(bytes)} in ${count(partitions.length, 'partition')}`)
  line('Deliveries', describeStates(deliveries.states))
  if (log.problem !== null) line('Problem', log.problem)
  printHolders(log.holders, output)
  printDeliveryTrouble(deliveries, output)
  printProcesses(status.processes, output)
  if (output.verbose) printPartitions(partitions, output)
}

function describePending(migrations: readonly string[], files: readonly string[]): string {
  return migrations.length > 0 ? count(migrations.length, 'migration') : count(files.length, 'file')
}

function describeSchema({ state, version, latest, pending, pendingFiles }: Status['schema']): string {
  switch (state) {
    case 'empty':
      return 'not installed. Run: aftercommit migrate'
    case 'behind':
      return `version ${version} of ${latest}; ${describePending(pending, pendingFiles)} to apply. Run: aftercommit migrate`
    case 'too-new':
      return `version ${version}, too new for this aftercommit, which knows ${latest}. Deploy the newer one here too`
    case 'changed':
      return `version ${version}, made by a different build. Run: aftercommit doctor`
    case 'ahead':
      return `version ${version}, newer than the ${latest} that this aftercommit knows, and compatible`
    case 'current':
      return `version ${version}, up to date`
  }
}

function printHolders(holders: NonNullable<Status['log']>['holders'], output: Output): void {
  if (holders.length === 0) return
  output.data(`\n${output.colors.bold('Holding the frontier back')}`)
  output.table(HOLDER_COLUMNS, holders.map(toHolderRow), '  ')
  output.talk(`\nTo end the oldest: aftercommit unblock`)
}

function printProcesses(processes: Status['processes'], output: Output): void {
  output.data(`\n${output.colors.bold('Processes')}${processes.length === 0 ? ': none' : ''}`)
  if (processes.length === 0) return
  output.table(
    [
      { title: 'host', min: 10 },
      { title: 'pid', align: 'right' },
      { title: 'version' },
      { title: 'running for', align: 'right' },
      { title: 'heard of', align: 'right' },
    ],
    processes.map((one) => [
      one.host,
      String(one.pid),
      one.version,
      formatDuration(one.startedSecondsAgo * 1_000),
      `${formatDuration(one.heartbeatSecondsAgo * 1_000)} ago`,
    ]),
    '  ',
  )
}

function printPartitions(partitions: Status['partitions'], output: Output): void {
  output.data(`\n${output.colors.bold('Partitions')}`)
  output.table(
    [
      { title: 'name' },
      { title: 'from', align: 'right' },
      { title: 'to', align: 'right' },
      { title: 'size', align: 'right' },
    ],
    partitions.map(({ name, from, to, bytes }) => [
      name,
      String(from),
      to === null ? 'open' : String(to - 1n),
      formatBytes(bytes),
    ]),
    '  ',
  )
}

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`
}

function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let size = bytes
  while (size >= 1024 && units.length > 1) {
    size /= 1024
    units.shift()
  }
  return `${size >= 10 || size === 0 ? Math.round(size) : size.toFixed(1)} ${units[0]}`
}
