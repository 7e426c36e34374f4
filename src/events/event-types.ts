/**
 * What the compiler derives from a catalogue: the names, what each takes and gives, and which events a list of patterns
 * chooses. The matching below is the same as in pattern.ts, played on literal types.
 */
import type { EventDefinitions, EventSchemas } from './define-events.ts'
import type { AftercommitEvent } from './event.ts'
import type { SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.ts'

/** The names of a catalogue. */
export type EventName<D extends EventDefinitions> = keyof D['schemas'] & string

/** What `emit` takes for this event: the input of its schema. */
export type PayloadInput<D extends EventDefinitions, Name extends EventName<D>> = SchemaInput<
  SchemaOf<D['schemas'][Name]>
>

/** What handlers get of this event: the output of its schema. */
export type Payload<D extends EventDefinitions, Name extends EventName<D>> = SchemaOutput<SchemaOf<D['schemas'][Name]>>

/** The union of the events that the patterns choose: `EventOf<typeof events, 'order.*'>`. */
export type EventOf<D extends EventDefinitions, Patterns extends string | readonly string[] = '*'> =
  string extends EventName<D>
    ? AftercommitEvent
    : EventNamed<D, Chosen<EventName<D>, Patterns extends readonly string[] ? Patterns[number] : Patterns>>

type EventNamed<D extends EventDefinitions, Name> =
  Name extends EventName<D> ? AftercommitEvent<Name, Payload<D, Name>> : never

type SchemaOf<Entry extends EventSchemas[string]> = Entry extends StandardSchema
  ? Entry
  : Entry extends { readonly schema: infer S extends StandardSchema }
    ? S
    : never

/** The names that at least one pattern matches. Patterns not known to the compiler may match anything. */
type Chosen<Name, Pattern> = string extends Pattern
  ? Name
  : Name extends string
    ? true extends Matches<Pattern, Segments<Name>>
      ? Name
      : never
    : never

type Matches<Pattern, Name extends readonly string[]> = Pattern extends '*'
  ? true
  : Pattern extends string
    ? MatchesSegments<Segments<Pattern>, Name>
    : never

type MatchesSegments<Pattern extends readonly string[], Name extends readonly string[]> = Pattern extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? First extends '**'
    ? MatchesAnywhere<Rest, Name>
    : Name extends readonly [infer Head, ...infer Tail extends readonly string[]]
      ? Head extends Wildcards<First>
        ? MatchesSegments<Rest, Tail>
        : false
      : false
  : Name extends readonly []
    ? true
    : false

/** After `**`: the rest of the pattern may begin at any segment that is left. */
type MatchesAnywhere<Rest extends readonly string[], Name extends readonly string[]> =
  | MatchesSegments<Rest, Name>
  | (Name extends readonly [string, ...infer Tail extends readonly string[]] ? MatchesAnywhere<Rest, Tail> : false)

type Wildcards<Segment extends string> = Segment extends `${infer Before}*${infer After}`
  ? `${Before}${string}${Wildcards<After>}`
  : Segment

/** The parts between the dots, without a last `vN`. */
type Segments<Name extends string> = WithoutVersion<Split<Name>>

type Split<Name extends string> = Name extends `${infer First}.${infer Rest}` ? [First, ...Split<Rest>] : [Name]

type WithoutVersion<Parts extends readonly string[]> = Parts extends readonly [
  ...infer Base extends readonly [string, ...string[]],
  `v${infer Version}`,
]
  ? Version extends '0' | `-${string}`
    ? Parts
    : Version extends `${bigint}`
      ? Base
      : Parts
  : Parts
