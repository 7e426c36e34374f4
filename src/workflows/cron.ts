/** When a schedule is due next. The library that reads cron expressions is loaded with the first schedule. */
import { AftercommitError } from '../errors.ts'

export interface CronTimes {
  /** The first time after this one; undefined when there is none. */
  next(after: Date): Date | undefined
}

/** Five fields, or six with seconds. `zone`: a name like `Europe/Berlin`; days are as long as they are there. */
export async function readCron(id: string, expression: string, zone: string): Promise<CronTimes> {
  const { Cron } = await import('croner')
  try {
    // Never started: it is only asked.
    const cron = new Cron(expression, { timezone: zone, paused: true, mode: '5-or-6-parts' })
    cron.nextRun(new Date(0))
    return { next: (after) => cron.nextRun(after) ?? undefined }
  } catch (error) {
    throw new AftercommitError(
      'BAD_OPTION',
      `Schedule "${id}" was not added: its cron expression or time zone cannot be read. ` +
        'Write five fields like "0 9 * * 1-5", or six with seconds first, and a zone like "Europe/Berlin".',
      { cause: error },
    )
  }
}
