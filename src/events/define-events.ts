import { AftercommitError } from '../errors.ts'
import { baseName, eventNameFault, versionSuffix } from './event-name.ts'
import { textProblem } from './identifiers.ts'
import { quoted } from './quoted.ts'
import { isStandardSchema, type StandardSchema } from './standard-schema.ts'

/**
 * The catalogue: which events exist and what they carry. Types follow from it everywhere else, and every mistake in it
 * is reported here, all at once, before anything runs.
 */
export function defineEvents<M extends EventSchemas>(
  schemas: M,
  { streams = [] }: DefineEventsOptions = {},
): EventDefinitions<M> {
  const problems: DefinitionProblem[] = []
  const byName = new Map<string, EventDefinition>()
  const byBase = new Map<string, EventDefinition>()
  for (const name of Object.keys(schemas)) {
    const { definition, faults } = readDefinition(name, schemas[name])
    const rival = byBase.get(baseName(name))
    if (rival) faults.push(`is the same event as ${quoted(rival.name)}: keep the newest and give it an upcast.`)
    problems.push(...faults.map((fault) => ({ name, message: `${quoted(name)} ${fault}` })))
    byName.set(name, definition)
    byBase.set(baseName(name), definition)
  }
  problems.push(...streamProblems(streams))
  if (problems.length > 0) throw new EventDefinitionError(problems)
  return {
    schemas,
    names: [...byName.keys()],
    streams: [...streams],
    get: (name) => byName.get(name),
    currentFor: (type) => byBase.get(baseName(type)),
  }
}

export interface DefineEventsOptions {
  /** Aggregate types kept as streams: their events are numbered 1, 2, … and can be written with `expectedVersion`. */
  streams?: readonly string[]
}

/** One event: a schema alone, or a schema with its version and the steps that lift older payloads to it. */
export type EventSchemas = Readonly<Record<string, StandardSchema | VersionedSchema>>

export interface VersionedSchema {
  readonly schema: StandardSchema
  /** 1 unless told. */
  readonly version?: number
  /** Step n turns a payload of version n into one of version n + 1. */
  readonly upcast?: Readonly<Record<number, UpcastStep>>
}

// Written as a method so that a step may name the exact type of the older payload it takes.
export type UpcastStep = { step(payload: unknown): unknown }['step']

export interface EventDefinition {
  readonly name: string
  readonly schema: StandardSchema
  readonly version: number
  readonly steps: ReadonlyMap<number, UpcastStep>
}

export interface EventDefinitions<M extends EventSchemas = EventSchemas> {
  readonly schemas: M
  readonly names: readonly string[]
  readonly streams: readonly string[]
  /** The definition of exactly this name. */
  get(name: string): EventDefinition | undefined
  /** The definition that a stored type is read with: `.vN` is ignored, so `a.b` and `a.b.v1` find `a.b.v2`. */
  currentFor(type: string): EventDefinition | undefined
}

export interface DefinitionProblem {
  /** The event or stream it is about. */
  readonly name: string
  readonly message: string
}

export class EventDefinitionError extends AftercommitError {
  readonly problems: readonly DefinitionProblem[]

  constructor(problems: readonly DefinitionProblem[]) {
    const count = problems.length === 1 ? 'one mistake' : `${problems.length} mistakes`
    const list = problems.map((problem) => `  - ${problem.message}`).join('\n')
    super('BAD_DEFINITION', `The event definitions have ${count}, so none of them is used:\n${list}`)
    this.problems = problems
  }
}

function readDefinition(name: string, entry: unknown): { definition: EventDefinition; faults: string[] } {
  const faults: string[] = []
  const nameFault = eventNameFault(name)
  if (nameFault !== undefined) faults.push(nameFault)
  const { schema, version: given, upcast = {} } = isStandardSchema(entry) ? { schema: entry } : asVersioned(entry)
  if (!isStandardSchema(schema)) faults.push('has no schema: give a Standard Schema such as z.object({ … }).')
  const suffix = versionSuffix(name)
  const version = given ?? suffix ?? 1
  faults.push(...versionFaults(version, suffix, upcast))
  const steps = new Map(Object.entries(upcast).map(([from, step]) => [Number(from), step]))
  return { definition: { name, schema: schema as StandardSchema, version, steps }, faults }
}

function asVersioned(entry: unknown): Partial<VersionedSchema> {
  return typeof entry === 'object' && entry !== null ? entry : {}
}

type Steps = Readonly<Record<number, UpcastStep>>

function versionFaults(version: number, suffix: number | undefined, upcast: Steps): string[] {
  if (!Number.isSafeInteger(version) || version < 1) return ['has a version that is not a whole number from 1 up.']
  const faults = Object.keys(upcast).flatMap((from) => stepFault(from, upcast, version) ?? [])
  if (suffix !== undefined && suffix !== version) {
    faults.push(`ends in .v${suffix} but has version ${version}: make them agree, or drop the suffix.`)
  }
  const missing: number[] = []
  for (let from = 1; from < version && missing.length < 10; from++) {
    if (!Object.hasOwn(upcast, from)) missing.push(from)
  }
  if (missing.length > 0) {
    faults.push(`has version ${version} but no upcast for ${missing.join(', ')}: older events could not be read.`)
  }
  return faults
}

function stepFault(from: string, upcast: Steps, version: number): string | undefined {
  const number = Number(from)
  if (!Number.isSafeInteger(number) || number < 1 || number >= version) {
    return `has an upcast step ${quoted(from)} that leads nowhere: step n lifts version n, the newest is ${version}.`
  }
  return typeof upcast[number] === 'function' ? undefined : `has an upcast step ${from} that is not a function.`
}

function streamProblems(streams: readonly string[]): DefinitionProblem[] {
  return streams.flatMap((name, at) => {
    const fault = streams.indexOf(name) === at ? textProblem(name) : 'is listed twice'
    return fault === undefined ? [] : [{ name: String(name), message: `Stream ${quoted(name)} ${fault}.` }]
  })
}
