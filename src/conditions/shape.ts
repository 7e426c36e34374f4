/**
 * What is known of a value before there is one: from literals, from functions, and from the schema of the event where
 * that can be read. It serves to refuse at load what could never be right.
 */
export interface Shape {
  /** What it can be, besides null or absent, which everything can be. Undefined: anything. */
  readonly kinds?: readonly Kind[]
  readonly fields?: KnownFields
  readonly items?: Shape
}

export type Kind = 'bool' | 'number' | 'text' | 'list' | 'map' | 'timestamp' | 'duration'

export interface KnownFields {
  readonly byName: ReadonlyMap<string, Shape>
  /** Whether there may be fields that are not listed. */
  readonly open: boolean
}

export const ANYTHING: Shape = {}
export const BOOL: Shape = { kinds: ['bool'] }

export function canBe(shape: Shape, kind: Kind): boolean {
  return shape.kinds === undefined || shape.kinds.includes(kind)
}

/** Only null, as the literal is. */
export function isOnlyNull(shape: Shape): boolean {
  return shape.kinds?.length === 0
}

/** For messages: "a number", "text or a list". */
export function describeShape(shape: Shape): string {
  if (shape.kinds === undefined) return 'anything'
  return shape.kinds.length === 0 ? 'null' : shape.kinds.map(describeKind).join(' or ')
}

export function describeKind(kind: Kind): string {
  return DESCRIPTIONS[kind]
}

const DESCRIPTIONS: Readonly<Record<Kind, string>> = {
  bool: 'true or false',
  number: 'a number',
  text: 'text',
  list: 'a list',
  map: 'an object',
  timestamp: 'a timestamp',
  duration: 'a duration',
}

/** The fields that any one of several events has. Unknown as soon as those of one of them are. */
export function mergeFields(all: readonly (KnownFields | undefined)[]): KnownFields | undefined {
  return all.length === 0 ? undefined : all.reduce((one, other) => one && other && eitherFields(one, other))
}

export function eitherShape(one: Shape, other: Shape): Shape {
  if (one.kinds === undefined || other.kinds === undefined) return ANYTHING
  const fields = ofEither('map', one, other, (shape) => shape.fields, eitherFields)
  const items = ofEither('list', one, other, (shape) => shape.items, eitherShape)
  return {
    kinds: [...new Set([...one.kinds, ...other.kinds])],
    ...(fields === undefined ? {} : { fields }),
    ...(items === undefined ? {} : { items }),
  }
}

function eitherFields(one: KnownFields, other: KnownFields): KnownFields {
  const byName = new Map(one.byName)
  for (const [name, shape] of other.byName) {
    const known = byName.get(name)
    byName.set(name, known === undefined ? shape : eitherShape(known, shape))
  }
  return { byName, open: one.open || other.open }
}

/** A side that cannot be of the kind has no say in what such a value looks like inside. */
function ofEither<Inner>(
  kind: Kind,
  one: Shape,
  other: Shape,
  innerOf: (shape: Shape) => Inner | undefined,
  merge: (one: Inner, other: Inner) => Inner,
): Inner | undefined {
  if (!canBe(one, kind)) return innerOf(other)
  if (!canBe(other, kind)) return innerOf(one)
  const [first, second] = [innerOf(one), innerOf(other)]
  return first === undefined || second === undefined ? undefined : merge(first, second)
}
