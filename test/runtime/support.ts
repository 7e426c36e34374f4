import type { Logger, LogLevel } from '../../src/runtime/index.ts'

export interface Line {
  level: LogLevel
  message: string
  fields: Record<string, unknown>
}

/** A logger that keeps its lines for the test to read. */
export function recordingLogger(): Logger & { lines: Line[] } {
  const lines: Line[] = []
  const withFields = (bound: object): Logger => {
    const write = (level: LogLevel) => (fields: object, message: string) => {
      lines.push({ level, message, fields: { ...bound, ...fields } })
    }
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (fields) => withFields({ ...bound, ...fields }),
    }
  }
  return { ...withFields({}), lines }
}

export interface ScrapedSample {
  name: string
  labels: Record<string, string>
  value: number
}

/**
 * Reads the Prometheus text format character by character, by its published grammar and without any of the code that
 * writes it. Throws on a line that does not follow the grammar, a sample before its TYPE or a series told twice.
 */
export function parseExposition(text: string) {
  const help = new Map<string, string>()
  const types = new Map<string, string>()
  const samples: ScrapedSample[] = []
  const seen = new Set<string>()
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line must end with a line feed')
  for (const line of text.split('\n').slice(0, -1)) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line)
    if (comment) {
      const target = comment[1] === 'HELP' ? help : types
      if (target.has(comment[2]!)) throw new Error(`second ${comment[1]} line: ${line}`)
      target.set(comment[2]!, comment[1] === 'HELP' ? unescapeText(comment[3]!, '\\n') : comment[3]!)
      continue
    }
    const sample = parseSample(line)
    const family = types.has(sample.name) ? sample.name : sample.name.replace(/_(bucket|sum|count)$/, '')
    if (!types.has(family)) throw new Error(`sample before its TYPE: ${line}`)
    const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
    if (seen.has(identity)) throw new Error(`series told twice: ${line}`)
    seen.add(identity)
    samples.push(sample)
  }
  const value = (name: string, labels: Record<string, string> = {}) =>
    samples.find((s) => s.name === name && JSON.stringify(s.labels) === JSON.stringify(labels))?.value
  return { help, types, samples, value }
}

function parseSample(line: string): ScrapedSample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0]
  if (name === undefined) throw new Error(`no metric name: ${line}`)
  const labels: Record<string, string> = {}
  let at = name.length
  if (line[at] === '{') {
    at++
    while (line[at] !== '}') {
      const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="/.exec(line.slice(at))
      if (!label) throw new Error(`bad label at ${at}: ${line}`)
      at += label[0].length
      const start = at
      while (line[at] !== '"') {
        if (at >= line.length) throw new Error(`open label value: ${line}`)
        at += line[at] === '\\' ? 2 : 1
      }
      labels[label[1]!] = unescapeText(line.slice(start, at), '\\n"')
      at++
      if (line[at] === ',') at++
    }
    at++
  }
  const number = /^ ([+-]Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(line.slice(at))?.[1]
  if (number === undefined) throw new Error(`bad value: ${line}`)
  return { name, labels, value: Number(number.replace('Inf', 'Infinity')) }
}

function unescapeText(text: string, allowed: string): string {
  return text.replace(/\\(.)/gs, (_, char: string) => {
    if (!allowed.includes(char)) throw new Error(`bad escape \\${char}`)
    return char === 'n' ? '\n' : char
  })
}

/** Holds up whatever awaits `passed` until `pass` is called. */
export function gate(): { passed: Promise<void>; pass: () => void } {
  let pass = () => {}
  const passed = new Promise<void>((resolve) => {
    pass = resolve
  })
  return { passed, pass: () => pass() }
}
