/** One schedule as a process knows it. */
import { AftercommitError } from '../errors.ts'
import type { EmitRequest } from '../log/index.ts'
import type { CronTimes } from './cron.ts'
import type { Workflow } from './workflow.ts'

export interface ScheduleOptions {
  /** Stable over releases. */
  readonly id: string
  /** Five fields, or six with seconds first. */
  readonly cron: string
  /** A name like `Europe/Berlin`; UTC unless told. */
  readonly zone?: string | undefined
  /** An event to append; a function is told the time it was due. */
  readonly emit?: EmitRequest | ((due: Date) => EmitRequest) | undefined
  /** An input for a workflow. */
  readonly execute?: { readonly workflow: Workflow; readonly input: unknown | ((due: Date) => unknown) } | undefined
}

export interface KnownSchedule extends ScheduleOptions {
  readonly zone: string
  readonly times: CronTimes
}

export function checkSchedule(options: ScheduleOptions): ScheduleOptions {
  const { id } = options
  if (typeof id !== 'string' || !/^[\w:.-]{1,200}$/.test(id))
    throw refused(String(id).slice(0, 80), 'needs an `id` of 1 to 200 letters, digits and _ : . -')
  if ((options.emit === undefined) === (options.execute === undefined))
    throw refused(id, 'needs either `emit` or `execute`')
  return options
}

export function refused(id: string, fault: string): AftercommitError {
  return new AftercommitError('BAD_OPTION', `Schedule "${id}" ${fault}, so it was not added.`)
}

/** What its deliveries and its dead letters go by. */
export function nameOfSchedule(id: string): string {
  return `schedule:${id}`
}

/** What it does, for people. */
export function describeAction({ emit, execute }: Pick<ScheduleOptions, 'emit' | 'execute'>): string {
  if (execute) return `execute ${execute.workflow.type}`
  return typeof emit === 'function' ? 'emit' : `emit ${emit?.type}`
}
