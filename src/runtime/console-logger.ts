import { printable } from '../printable.ts'
import { type Clock, systemClock } from './clock.ts'
import { LOG_LEVELS, type Logger, type LogLevel } from './logger.ts'
import { redacting } from './redacting-logger.ts'

export interface ConsoleLoggerOptions {
  level?: LogLevel
  /** Standard error by default: standard output belongs to data. */
  stream?: { write(text: string): unknown }
  /** One JSON object per line, for machines, instead of a short line for people. */
  json?: boolean
  clock?: Clock
}

/** The logger for those who bring none. Redacts by itself. */
export function consoleLogger(options: ConsoleLoggerOptions = {}): Logger {
  const { level: lowest = 'info', stream = process.stderr, json = false, clock = systemClock } = options
  const isLevelEnabled = (level: LogLevel) => LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest)
  const toLine = json ? toJsonLine : toHumanLine

  const withFields = (bound: object): Logger => {
    const write = (level: LogLevel) => (fields: object, message: string) => {
      if (isLevelEnabled(level)) stream.write(`${toLine(level, clock.now(), message, { ...bound, ...fields })}\n`)
    }
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (fields) => withFields({ ...bound, ...fields }),
      isLevelEnabled,
    }
  }
  return redacting(withFields({}))
}

function toJsonLine(level: LogLevel, time: Date, msg: string, fields: object): string {
  return printable(JSON.stringify({ ...fields, level, time: time.toISOString(), msg }))
}

function toHumanLine(level: LogLevel, time: Date, message: string, fields: object): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${printable(key)}=${toWord(value)}`)
  return `${time.toISOString().slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${printable(message)}${pairs.join('')}`
}

function toWord(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/@+-]+$/.test(value) ? value : printable(JSON.stringify(value))
}
