/** `expression | filter(arguments) | filter`, taken apart. */
import { type Part, splitCode } from './code-text.ts'
import { type Code, type Fail, trimmed } from './scan.ts'
import { Refusal } from './template-error.ts'

export interface Pipeline {
  readonly expression: Code
  readonly calls: readonly FilterCall[]
}

export interface FilterCall {
  readonly name: string
  readonly offset: number
  readonly args: readonly Argument[]
}

export interface Argument {
  /** Given as `zone = 'Europe/Berlin'`. */
  readonly name: string | undefined
  readonly code: Code
}

export function parsePipeline(code: Code, fail: Fail): Pipeline {
  const [first, ...rest] = splitCode(code.source, '|').map((part) => cut(code, part))
  if (first === undefined || first.source === '') {
    throw fail(code.offset, new Refusal('there is no expression', 'Name a field, such as {{ total }}.'))
  }
  return { expression: first, calls: rest.map((call) => parseCall(call, fail)) }
}

function parseCall(code: Code, fail: Fail): FilterCall {
  const [whole, name = '', open] = /^([A-Za-z_]\w*)\s*(\()?/.exec(code.source) ?? ['']
  const closed = open === undefined ? whole.trim() === code.source : code.source.endsWith(')')
  if (name === '' || !closed) {
    const advice =
      'A filter is a name, with arguments in brackets if it takes any, and applies to all that stands before.'
    throw fail(code.offset, new Refusal('what follows "|" is no filter', advice))
  }
  const inside = open === undefined ? '' : code.source.slice(whole.length, -1)
  if (inside.trim() === '') return { name, offset: code.offset, args: [] }
  const list = { source: inside, offset: code.offset + whole.length }
  const args = splitCode(inside, ',').map((part) => parseArgument(cut(list, part), fail))
  return { name, offset: code.offset, args }
}

function parseArgument(code: Code, fail: Fail): Argument {
  const [named, name] = /^([A-Za-z_]\w*)\s*=(?!=)\s*/.exec(code.source) ?? ['']
  const value = { source: code.source.slice(named.length), offset: code.offset + named.length }
  if (value.source === '')
    throw fail(code.offset, new Refusal('an argument is empty', 'Remove the comma, or fill it in.'))
  return { name, code: value }
}

function cut({ source, offset }: Code, { start, end }: Part): Code {
  const part = trimmed(source, start, end)
  return { source: part.source, offset: offset + part.offset }
}
