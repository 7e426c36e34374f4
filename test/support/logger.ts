import type { Logger } from '../../src/runtime/index.ts'

/** A logger that keeps its lines as `level message`, for tests that wait for one. */
export function collectingLogger(): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const write = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`)
  const logger: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => logger,
  }
  return { logger, lines }
}
