/**
 * The first place of something that is defined twice in one file. The parser only tells the second, so what stands above
 * it, which is good TOML, is read once more.
 */
import { type ParseError, parseTOML } from 'toml-eslint-parser'
import { placeText, spanOfNode } from './locate.ts'
import { pathKey } from './mistake.ts'
import { parseTomlFile } from './toml-file.ts'

export function definedBefore(text: string, name: string, { message, lineNumber }: ParseError): string | undefined {
  if (!message.includes('multiple times')) return undefined
  const lines = text.split(/\r?\n/)
  const above = lines.slice(0, lineNumber - 1).join('\n')
  try {
    const { places } = parseTomlFile(above, name)
    const path = [...pathOfLine(above, lines[lineNumber - 1] ?? '')]
    for (; path.length > 0; path.pop()) {
      const place = places.get(pathKey(path))
      if (place !== undefined) return placeText(name, spanOfNode(place.key))
    }
  } catch {
    // Inside an inline table of several lines there is nothing whole above: the second place has to do.
  }
  return undefined
}

function pathOfLine(above: string, line: string): readonly (string | number)[] {
  const [entry] = parseTOML(line).body[0].body
  if (entry?.type === 'TOMLTable')
    return entry.key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value))
  const table = parseTOML(above).body[0].body.findLast((node) => node.type === 'TOMLTable')
  const keys = entry?.key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value)) ?? []
  return [...(table?.resolvedKey ?? []), ...keys]
}
