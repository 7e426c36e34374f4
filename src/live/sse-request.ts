/** What a client may ask for: `types`, `aggregate_type`, `aggregate_id`, `from`; the header `Last-Event-ID` wins. */
import { AftercommitError } from '../errors.ts'
import type { ResumeToken } from './feed.ts'
import { checkAsked, type Wanted } from './filter.ts'
import { Refusal } from './inbound-problem.ts'
import { parseToken } from './token.ts'

export interface Asked {
  readonly types: readonly string[]
  readonly aggregate: Wanted['aggregate']
  readonly from: ResumeToken | undefined
}

const MAX_QUERY = 8_192
const MAX_TEXT = 500

/** Throws a refusal that says what is wrong. */
export function readAsked(request: Request): Asked {
  const { search, searchParams } = new URL(request.url)
  if (search.length > MAX_QUERY) bad(`The query is longer than ${MAX_QUERY} characters.`)
  return {
    types: readTypes(searchParams),
    aggregate: readAggregate(searchParams),
    from: readFrom(request.headers, searchParams),
  }
}

function readTypes(query: URLSearchParams): readonly string[] {
  const types = query.getAll('types').flatMap((list) => list.split(','))
  if (types.length === 0) return ['*']
  try {
    checkAsked(types)
  } catch (error) {
    if (error instanceof AftercommitError && error.code === 'BAD_PATTERN') bad(`\`types\`: ${error.message}`)
    throw error
  }
  return types
}

function readAggregate(query: URLSearchParams): Wanted['aggregate'] {
  const type = readText(query, 'aggregate_type')
  const id = readText(query, 'aggregate_id')
  if (type !== undefined) return { type, id }
  if (id !== undefined) bad('`aggregate_id` is given without `aggregate_type`.')
  return undefined
}

function readText(query: URLSearchParams, name: string): string | undefined {
  const value = single(query, name)
  if (value === '' || (value?.length ?? 0) > MAX_TEXT)
    bad(`\`${name}\` is empty or longer than ${MAX_TEXT} characters.`)
  return value
}

function readFrom(headers: Headers, query: URLSearchParams): ResumeToken | undefined {
  const last = headers.get('last-event-id')
  const [name, text] = last ? ['`Last-Event-ID`', last] : ['`from`', single(query, 'from')]
  if (text === undefined) return undefined
  return parseToken(text) ?? bad(`${name} is no resume token. Send one that this feed has given, such as 1.42.`)
}

function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) bad(`\`${name}\` is given more than once.`)
  return value
}

function bad(detail: string): never {
  throw new Refusal(400, detail)
}
