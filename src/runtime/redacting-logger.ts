import type { Logger, LogLevel } from './logger.ts'
import { maskSecrets } from './mask.ts'
import { redact } from './redact.ts'

/**
 * The wrapper every logger goes through: what reaches `logger` is masked, plain JSON, with errors as name, code and
 * message (and a stack when the debug level is on). A logger that throws is silenced for that line: losing a line is
 * better than losing the loop that wrote it. Wrapping twice is wrapping once.
 */
export function redacting(logger: Logger): Logger {
  if (wrapped.has(logger)) return logger

  const enabled = (level: LogLevel) => logger.isLevelEnabled?.(level) ?? true
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (!enabled(level)) return
    try {
      // Asking for stacks takes a logger that can tell its level; one that cannot may be talking to production.
      const stack = logger.isLevelEnabled?.('debug') ?? false
      logger[level](redact(fields, { stack }), maskSecrets(message))
    } catch {}
  }
  const result: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => redacting(logger.child(redact(fields))),
    isLevelEnabled: enabled,
  }
  wrapped.add(result)
  return result
}

const wrapped = new WeakSet<Logger>()
