import { describe, expect, it } from 'vitest'
import { toAggregate, toStartPoint, toTime } from '../../src/cli/arguments.ts'
import { chooseTarget } from '../../src/cli/commands/unblock.ts'
import { layOutJson, toJsonText } from '../../src/cli/json.ts'
import { createOutput, wantsColor } from '../../src/cli/output.ts'
import { toPlain } from '../../src/events/index.ts'

describe('colour', () => {
  const terminal = { isTTY: true }

  it('is for terminals', () => {
    expect(wantsColor(terminal, {}, true)).toBe(true)
    expect(wantsColor({}, {}, true)).toBe(false)
    expect(wantsColor(terminal, { TERM: 'dumb' }, true)).toBe(false)
    expect(wantsColor({}, { CI: 'true' }, true)).toBe(false)
  })

  it('follows the flag, then NO_COLOR, then FORCE_COLOR', () => {
    expect(wantsColor(terminal, { FORCE_COLOR: '1' }, false)).toBe(false)
    expect(wantsColor(terminal, { FORCE_COLOR: '1', NO_COLOR: '1' }, true)).toBe(false)
    expect(wantsColor(terminal, { NO_COLOR: '' }, true)).toBe(true)
    expect(wantsColor({}, { FORCE_COLOR: '1', TERM: 'dumb' }, true)).toBe(true)
    expect(wantsColor(terminal, { FORCE_COLOR: '0' }, true)).toBe(false)
  })
})

describe('output', () => {
  function capture(options: { json?: boolean; quiet?: boolean }, isTTY: boolean) {
    const written = { stdout: '', stderr: '' }
    const stream = (name: 'stdout' | 'stderr') => ({
      isTTY,
      write: (text: string) => {
        written[name] += text
      },
    })
    return {
      written,
      output: createOutput(
        { color: false, ...options },
        { stdout: stream('stdout'), stderr: stream('stderr'), env: {} },
      ),
    }
  }

  it('keeps data and talk apart, and is silent about the rest when quiet', () => {
    const { written, output } = capture({ quiet: true }, false)
    output.data('data')
    output.talk('talk')
    output.warn('warning')
    expect(written).toEqual({ stdout: 'data\n', stderr: 'warning\n' })
  })

  it('spells out characters that a terminal obeys, in JSON and in text', () => {
    const value = { 'a\u009b2J': ['\u202egnp.exe', '\u007f'] }
    for (const isTTY of [false, true]) {
      const { written, output } = capture({ json: true }, isTTY)
      output.document(value)
      output.line(value)
      expect(written.stdout).not.toMatch(/[\u007f\u009b\u202e]/)
      for (const line of isTTY ? [] : written.stdout.trim().split('\n')) expect(JSON.parse(line)).toEqual(value)
    }
    const { written, output } = capture({}, true)
    const text = 'Nothing is called "\u009b2J\u001b[31m\u202e".\n\tSee docs'
    for (const print of [output.data, output.talk, output.warn]) print(text)
    expect(written.stdout).toBe('Nothing is called "\\u009b2J\\u001b[31m\\u202e".\n\tSee docs\n')
    expect(written.stderr).toBe(written.stdout + written.stdout)
  })

  it('keeps colours of its own, and no other sequence', () => {
    let written = ''
    const stream = { isTTY: true, write: (text: string) => (written += text) }
    const output = createOutput({ color: true }, { stdout: stream, stderr: stream, env: {} })
    output.data(`${output.colors.red('bad')} \u001b[8mhidden\u001b[2J`)
    expect(written).toBe('\u001b[31mbad\u001b[39m \\u001b[8mhidden\\u001b[2J\n')
  })

  it('prints JSON on one line for programs and laid out for people', () => {
    const piped = capture({ json: true }, false)
    piped.output.document({ a: [1] })
    expect(piped.written.stdout).toBe('{"a":[1]}\n')
    const seen = capture({ json: true }, true)
    seen.output.document({ a: [1] })
    expect(seen.written.stdout).toBe('{\n  "a": [\n    1\n  ]\n}\n')
  })
})

describe('JSON', () => {
  it('has snake_case keys and positions as text', () => {
    const found = { lastPosition: 12n, at: new Date(0), list: [{ ageSeconds: null }] }
    expect(toPlain(found)).toEqual({
      last_position: '12',
      at: '1970-01-01T00:00:00.000Z',
      list: [{ age_seconds: null }],
    })
  })

  it('is laid out without touching strings or numbers', () => {
    const text = '{"a":12345678901234567890123,"b":"x, {y}: \\"z\\"","c":{},"d":[]}'
    const laidOut = layOutJson(text)
    expect(laidOut.split('\n')).toHaveLength(6)
    expect(laidOut).toContain('"a": 12345678901234567890123')
    expect(laidOut).toContain('"x, {y}: \\"z\\""')
    expect(toJsonText(JSON.parse(laidOut.replace('12345678901234567890123', '1')))).toBe(
      text.replace('12345678901234567890123', '1'),
    )
  })
})

describe('arguments', () => {
  it('reads an aggregate up to its first slash', () => {
    expect(toAggregate('order/a/b')).toEqual({ type: 'order', id: 'a/b' })
    for (const bad of ['order', '/1', 'order/']) expect(() => toAggregate(bad)).toThrow('order/42')
  })

  it('reads where to start', () => {
    expect(toStartPoint('head')).toBe('head')
    expect(toStartPoint('12')).toBe(12n)
    expect(() => toStartPoint('-1')).toThrow('position')
  })

  it('reads times and ages', () => {
    expect(toTime('2026-01-31T12:00:00Z').toISOString()).toBe('2026-01-31T12:00:00.000Z')
    const before = Date.now()
    const ago = toTime('2h').getTime() + 7_200_000
    expect(ago).toBeGreaterThanOrEqual(before)
    expect(ago).toBeLessThanOrEqual(Date.now())
    for (const bad of ['2 hours', '2026-99-99', '12']) expect(() => toTime(bad)).toThrow('how long ago')
  })
})

describe('what unblock ends when not told', () => {
  const holder = { pid: 7, preparedGid: null, application: null, user: null, state: null }

  it('is the oldest that is old enough, and never one of unknown age', () => {
    const holders = [
      { ...holder, pid: 8, ageSeconds: 11 },
      { ...holder, ageSeconds: 3 },
      { ...holder, pid: 9, ageSeconds: null },
    ]
    expect(chooseTarget(holders, { olderThan: 10_000 })).toEqual({ pid: 8 })
    expect(chooseTarget(holders, { olderThan: 60_000 })).toBeUndefined()
    expect(chooseTarget(holders.slice(2), { olderThan: 0 })).toBeUndefined()
    expect(chooseTarget(holders, { olderThan: 60_000, pid: 3 })).toEqual({ pid: 3 })
    expect(
      chooseTarget([{ ...holder, pid: null, preparedGid: 'x', ageSeconds: 99 } as never], { olderThan: 0 }),
    ).toEqual({ gid: 'x' })
  })
})
