/** From what is wrong to where it stands: file, line, column and the line itself with a mark. */
import { codeFrame, type Shown, type Span } from './code-frame.ts'
import { type Found, type Mistake, type Path, pathKey, pathText } from './mistake.ts'
import { isSensitive } from './sensitive.ts'
import { sourceIndex } from './string-offset.ts'
import type { Place, TomlFile } from './toml-file.ts'

export type Places = ReadonlyMap<string, Place>

/** Puts places to what was found, in the order of the files. `fallback` is where a mistake without any place is put. */
export function locateAll(found: readonly Found[], places: Places, fallback: TomlFile): Mistake[] {
  const order = new Map<string, number>()
  const located = found.map((one) => {
    const { place, isExact } = findPlace(one.path, places)
    const file = place?.file ?? fallback
    if (!order.has(file.name)) order.set(file.name, order.size)
    const span = spanOf(one, place, isExact)
    const mistake = {
      where: placeText(file.name, span),
      path: pathText(one.path),
      message: one.message,
      frame: frameOf(one, file, span, place),
    }
    return { file: file.name, span, mistake }
  })
  located.sort(
    (one, other) =>
      order.get(one.file)! - order.get(other.file)! ||
      one.span.line - other.span.line ||
      one.span.column - other.span.column,
  )
  return located.map(({ mistake }) => mistake)
}

export function placeText(name: string, { line, column }: Span): string {
  return `${name}:${line}:${column + 1}`
}

/** A setting that is missing has no place of its own: the table that lacks it has. */
function findPlace(path: Path, places: Places): { place: Place | undefined; isExact: boolean } {
  for (let length = path.length; length > 0; length--) {
    const place = places.get(pathKey(path.slice(0, length)))
    if (place) return { place, isExact: length === path.length }
  }
  return { place: undefined, isExact: false }
}

function spanOf({ at, offset }: Found, place: Place | undefined, isExact: boolean): Span {
  if (place === undefined) return { line: 1, column: 0, length: 1 }
  const { file, key, value } = place
  if (at === 'key' || !isExact) return spanOfNode(key)
  const isText = value.type === 'TOMLValue' && value.kind === 'string'
  if (offset === undefined || !isText) return spanOfNode(value)
  return spanAt(file.text, sourceIndex(file.text, value.range[0], offset))
}

export function spanOfNode({ loc, range }: Place['key']): Span {
  const isOneLine = loc.start.line === loc.end.line
  return { line: loc.start.line, column: loc.start.column, length: isOneLine ? range[1] - range[0] : 1 }
}

export function spanAt(text: string, index: number): Span {
  const before = text.slice(0, index)
  const line = before.split('\n').length
  return { line, column: index - (before.lastIndexOf('\n') + 1), length: 1 }
}

function frameOf({ path, at }: Found, { lines }: TomlFile, span: Span, place: Place | undefined): string {
  const shown: Shown = isSensitive(path) ? 'mark only' : at === 'key' ? 'up to the mark' : 'whole line'
  // Of what may be a secret the key is marked, and nothing else on the line is shown.
  const marked = shown === 'mark only' && place ? spanOfNode(place.key) : span
  return codeFrame(lines[marked.line - 1] ?? '', marked, shown)
}
