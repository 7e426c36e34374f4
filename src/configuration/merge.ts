/**
 * Several files as if they were one. A table may be opened from any number of files as long as only one defines it, the
 * rule that TOML has for a single file: `[observers.a]` here and `[observers.b]` there make two observers, while
 * `[runtime]` in both is a mistake that names both places.
 */
import { placeText, spanOfNode } from './locate.ts'
import { type Found, pathKey } from './mistake.ts'
import { emptyTable, type Place, type Table, type TomlFile } from './toml-file.ts'

export interface Merged {
  readonly data: Table
  readonly places: ReadonlyMap<string, Place>
  /** Each found at the place of the later file. */
  readonly twice: readonly { readonly found: Found; readonly file: TomlFile }[]
}

export function mergeFiles(files: readonly TomlFile[]): Merged {
  const [only, ...others] = files
  if (only !== undefined && others.length === 0) return asItIs(only)
  const merged = {
    data: emptyTable(),
    places: new Map<string, Place>(),
    twice: [] as { found: Found; file: TomlFile }[],
  }
  for (const file of files) {
    mergeTable(merged.data, withoutInclude(file), [], merged, file)
    for (const [key, place] of file.places) if (!merged.places.has(key)) merged.places.set(key, place)
  }
  return merged
}

function asItIs(file: TomlFile): Merged {
  return {
    data: withoutInclude(file),
    get places() {
      return file.places
    },
    twice: [],
  }
}

function withoutInclude({ data: { include: _, ...data } }: TomlFile): Table {
  return Object.assign(emptyTable(), data)
}

function mergeTable(
  into: Table,
  from: Table,
  path: readonly string[],
  { places, twice }: { places: Map<string, Place>; twice: { found: Found; file: TomlFile }[] },
  file: TomlFile,
): void {
  for (const key of Object.keys(from)) {
    const full = [...path, key]
    const earlier = places.get(pathKey(full))
    if (!Object.hasOwn(into, key)) into[key] = from[key]
    else if (isOpen(earlier, file.places.get(pathKey(full)), into[key], from[key])) {
      mergeTable(into[key] as Table, from[key] as Table, full, { places, twice }, file)
    } else {
      const also =
        earlier === undefined ? '' : ` It is also at ${placeText(earlier.file.name, spanOfNode(earlier.key))}.`
      twice.push({ found: { path: full, at: 'key', message: `is defined twice.${also} Keep one of them.` }, file })
    }
  }
}

function isOpen(one: Place | undefined, other: Place | undefined, ...values: unknown[]): boolean {
  const bothDefined = one?.isDefined === true && other?.isDefined === true
  return !bothDefined && values.every((value) => typeof value === 'object' && value !== null && !Array.isArray(value))
}
