/**
 * The shape of a logger: fields first, then a sentence. A pino logger fits as it is, and nothing else is asked of one.
 */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** A logger whose every line also carries `fields`. */
  child(fields: Record<string, unknown>): Logger
  /** Spares the work of building a line nobody will read. A logger without it gets every line. */
  isLevelEnabled?(level: LogLevel): boolean
}

export type LogLevel = (typeof LOG_LEVELS)[number]

/** From the most talkative to the most quiet. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
  isLevelEnabled: () => false,
}
