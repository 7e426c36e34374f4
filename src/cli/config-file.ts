/** Reads a TOML file into plain data and remembers where everything stands, so that a mistake can be pointed at. */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import { ConfigError, codeFrame, type Found, type Mistake, type Span } from './config-mistake.ts'

export interface ConfigFile {
  readonly data: Table
  /** Puts places to what was found, in the order of the file. */
  locate(found: readonly Found[]): Mistake[]
}

/** Without a prototype: a key named __proto__ is a key like any other, and refused as unknown. */
export type Table = { [key: string]: unknown }

interface Place {
  readonly key: Span
  readonly value: Span
}

export function parseConfigFile(text: string, name: string): ConfigFile {
  const places = new Map<string, Place>()
  const data = emptyTable()
  for (const node of parse(text, name).body[0].body) {
    if (node.type === 'TOMLKeyValue') assign(data, node, [], places)
    else addTable(data, node, places)
  }
  return {
    data,
    locate(found) {
      const located = found.map(({ path, at, message }) => {
        const span = places.get(keyOf(path))?.[at] ?? { line: 1, column: 0, length: 1 }
        const frame = codeFrame(text, span, at === 'key' ? 'up to the mark' : 'whole line')
        return { span, mistake: { where: placeOf(name, span), path: path.map(String).join('.'), message, frame } }
      })
      located.sort((one, other) => one.span.line - other.span.line || one.span.column - other.span.column)
      return located.map(({ mistake }) => mistake)
    },
  }
}

/** The parser stops at the first thing that is not TOML, so that one is reported alone. */
function parse(text: string, name: string): AST.TOMLProgram {
  try {
    return parseTOML(text)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const span = { line: error.lineNumber, column: error.column, length: 1 }
    throw new ConfigError([
      {
        where: placeOf(name, span),
        path: '(TOML)',
        message: `${error.message}.`,
        frame: codeFrame(text, span, 'up to the mark'),
      },
    ])
  }
}

function addTable(root: Table, node: AST.TOMLTable, places: Map<string, Place>): void {
  const path = node.resolvedKey.map(String)
  const table = path.reduce((parent, key, at) => {
    const part = node.key.keys[Math.min(at, node.key.keys.length - 1)]!
    note(places, path.slice(0, at + 1), spanOf(part), spanOf(node.key))
    return openTable(parent, key)
  }, root)
  for (const entry of node.body) assign(table, entry, path, places)
}

function assign(
  table: Table,
  { key, value }: AST.TOMLKeyValue,
  path: readonly string[],
  places: Map<string, Place>,
): void {
  const names = key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value))
  const full = [...path, ...names]
  names.forEach((_, at) => {
    note(places, [...path, ...names.slice(0, at + 1)], spanOf(key.keys[at]!), spanOf(value))
  })
  const parent = names.slice(0, -1).reduce(openTable, table)
  parent[names.at(-1)!] = toData(value, full, places)
}

function toData(node: AST.TOMLContentNode, path: readonly string[], places: Map<string, Place>): unknown {
  if (node.type === 'TOMLValue') return node.value
  if (node.type === 'TOMLArray')
    return node.elements.map((element, at) => toData(element, [...path, String(at)], places))
  const table = emptyTable()
  for (const entry of node.body) assign(table, entry, path, places)
  return table
}

function openTable(parent: Table, key: string): Table {
  parent[key] ??= emptyTable()
  return parent[key] as Table
}

function emptyTable(): Table {
  return Object.create(null) as Table
}

function note(places: Map<string, Place>, path: readonly string[], key: Span, value: Span): void {
  if (!places.has(keyOf(path))) places.set(keyOf(path), { key, value })
}

function keyOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path.map(String))
}

function spanOf({ loc, range }: AST.TOMLNode): Span {
  const oneLine = loc.start.line === loc.end.line
  return { line: loc.start.line, column: loc.start.column, length: oneLine ? range[1] - range[0] : 1 }
}

function placeOf(name: string, { line, column }: Span): string {
  return `${name}:${line}:${column + 1}`
}
