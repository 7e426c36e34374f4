/** Reads one TOML file into plain data and remembers where everything stands, so that a mistake can be pointed at. */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import { ExactNumber } from '../events/index.ts'
import { type Found, keyBelow } from './mistake.ts'

/** Without a prototype: a key named __proto__ is a key like any other. */
export type Table = { [key: string]: unknown }

export interface TomlFile {
  readonly name: string
  readonly lines: readonly string[]
  readonly text: string
  readonly data: Table
  /** Made when somebody asks, which is when something is wrong: a file of thousands of keys would have them all noted. */
  readonly places: ReadonlyMap<string, Place>
  /** TOML that cannot be used: what is no JSON, what nests too deep. */
  readonly found: readonly Found[]
}

export interface Place {
  readonly file: TomlFile
  readonly key: AST.TOMLNode
  readonly value: AST.TOMLNode
  /** False for a table that exists only because a table below it was opened: `[observers.a]` makes `observers`. */
  readonly isDefined: boolean
}

/** As deep as a payload may nest, below a handful of tables of our own. */
const DEEPEST = 80

/** Throws the parser's own ParseError: it stops at the first thing that is not TOML. */
export function parseTomlFile(text: string, name: string): TomlFile {
  // Some editors begin a file with a byte order mark; TOML does not know it.
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text
  const { data, found } = walk(parseTOML(content).body[0].body, () => {})
  let places: Map<string, Place> | undefined
  const file: TomlFile = {
    ...{ name, text: content, lines: content.split(/\r?\n/), data, found },
    get places() {
      // Parsed once more: what the parser makes is a hundred times the file, and is not kept in case of a mistake.
      places ??= findPlaces(file, parseTOML(content).body[0].body)
      return places
    },
  }
  return file
}

export { ParseError }

type Body = AST.TOMLTopLevelTable['body']

interface Building {
  readonly data: Table
  readonly found: Found[]
  /** Called for everything that has a place. */
  readonly note: (here: Here, key: AST.TOMLNode, value: AST.TOMLNode, isDefined: boolean) => void
}

/** Where the walk is: the key of the path, how long the path is, and its first part. */
interface Here {
  readonly key: string
  readonly depth: number
  readonly top: string | undefined
}

const TOP: Here = { key: '', depth: 0, top: undefined }

function walk(body: Body, note: Building['note']): Building {
  const file: Building = { data: emptyTable(), found: [], note }
  for (const node of body) {
    if (node.type === 'TOMLKeyValue') assign(file, file.data, node, TOP)
    else addTable(file, node)
  }
  return file
}

function findPlaces(file: TomlFile, body: Body): Map<string, Place> {
  const places = new Map<string, Place>()
  walk(body, ({ key: at }, key, value, isDefined) => {
    const known = places.get(at)
    if (known === undefined) places.set(at, { file, key, value, isDefined })
    // A table that is opened after one below it keeps the place where it was first seen.
    else if (isDefined && !known.isDefined) places.set(at, { ...known, isDefined })
  })
  return places
}

function addTable(file: Building, node: AST.TOMLTable): void {
  const { resolvedKey } = node
  if (isTooDeep(file, resolvedKey.length, node.key, String(resolvedKey[0]))) return
  let written = -1
  let here = TOP
  let table = file.data
  for (const [at, part] of resolvedKey.entries()) {
    // The number of an element of [[a]] is not written: it stands where its list does.
    if (typeof part === 'string') written++
    here = below(here, part)
    file.note(here, node.key.keys[written]!, node.key, at === resolvedKey.length - 1)
    table = openTable(table, String(part), resolvedKey[at + 1])
  }
  for (const entry of node.body) assign(file, table, entry, here)
}

function assign(file: Building, table: Table, { key, value }: AST.TOMLKeyValue, above: Here): void {
  if (isTooDeep(file, above.depth + key.keys.length, key, above.top ?? nameOf(key.keys[0]!))) return
  let here = above
  let parent = table
  for (const [at, part] of key.keys.entries()) {
    if (at > 0) parent = openTable(parent, nameOf(key.keys[at - 1]!), undefined)
    here = below(here, nameOf(part))
    file.note(here, part, value, true)
  }
  parent[nameOf(key.keys.at(-1)!)] = toData(file, value, here)
}

function toData(file: Building, node: AST.TOMLContentNode, here: Here): unknown {
  if (node.type === 'TOMLValue') return toScalar(file, node, here)
  if (node.type === 'TOMLInlineTable') {
    const table = emptyTable()
    for (const entry of node.body) assign(file, table, entry, here)
    return table
  }
  if (isTooDeep(file, here.depth + 1, node, here.top!)) return []
  return node.elements.map((element, at) => {
    const inside = below(here, at)
    file.note(inside, element, element, true)
    return toData(file, element, inside)
  })
}

/** As JSON has it: exact where a double would round, dates as their text. */
function toScalar({ found }: Building, node: AST.TOMLValue, { key }: Here): unknown {
  if (node.kind === 'integer') return Number.isSafeInteger(node.value) ? node.value : node.bigint
  if (node.kind === 'float') {
    if (!Number.isFinite(node.value) && !/\d/.test(node.number)) {
      const message = `is ${node.number}, and only numbers that JSON has can be used.`
      found.push({ path: key.split('\0').slice(1), at: 'value', message })
      return 0
    }
    return toExact(node.number.replaceAll('_', '').replace(/^\+/, ''), node.value)
  }
  return 'datetime' in node ? node.datetime : node.value
}

function toExact(text: string, value: number): number | ExactNumber {
  const isShort = text.replace(/[-.]/g, '').length <= 15
  return Number.isFinite(value) && (isShort || String(value) === text) ? value : new ExactNumber(text)
}

function isTooDeep(file: Building, depth: number, node: AST.TOMLNode, top: string): boolean {
  if (depth <= DEEPEST) return false
  file.note(below(TOP, top), node, node, true)
  file.found.push({ path: [top], at: 'key', message: `nests more than ${DEEPEST} levels. Make it flatter.` })
  return true
}

/** In a list of tables, `[[a]]`, the part after the name is a number. */
function openTable(parent: Table, key: string, next: string | number | undefined): Table {
  parent[key] ??= typeof next === 'number' ? [] : emptyTable()
  return parent[key] as Table
}

export function emptyTable(): Table {
  return Object.create(null) as Table
}

function below({ key, depth, top }: Here, part: string | number): Here {
  return { key: keyBelow(key, part), depth: depth + 1, top: top ?? String(part) }
}

function nameOf(part: AST.TOMLBare | AST.TOMLQuoted): string {
  return part.type === 'TOMLBare' ? part.name : part.value
}
