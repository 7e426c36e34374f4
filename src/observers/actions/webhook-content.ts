/** The headers and the body of a webhook, compiled. */
import type { Scope } from '../../conditions/index.ts'
import { reveal, type SecretText } from '../../configuration/index.ts'
import { stringifyJson, toCloudEvent } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import type { CompiledText, TemplateCompiler, TextTarget } from '../action.ts'
import { headerNameProblem, headerValueProblem } from '../network/index.ts'
import type { Mistakes } from './mistakes.ts'
import { constantText, unusable } from './rendering.ts'

export interface PreparedHeaders {
  /** The same for every event; names in lower case. */
  readonly fixed: Readonly<Record<string, string>>
  readonly rendered: readonly (readonly [string, CompiledText])[]
  /** Names whose value came from the environment. */
  readonly secretNames: ReadonlySet<string>
}

export function prepareHeaders(
  headers: Readonly<Record<string, SecretText>>,
  templates: TemplateCompiler,
  mistakes: Mistakes,
): PreparedHeaders {
  const fixed: Record<string, string> = Object.create(null)
  const rendered: [string, CompiledText][] = []
  const secretNames = new Set<string>()
  const seen = new Set<string>()
  for (const [written, value] of Object.entries(headers)) {
    const name = written.toLowerCase()
    const path = ['headers', written]
    const problem = seen.has(name) ? 'is given twice' : headerNameProblem(name)
    seen.add(name)
    if (problem !== undefined) mistakes.add(path, `The header "${written.slice(0, 60)}" ${problem}.`)
    else if (typeof value === 'string') {
      const template = mistakes.at(path, () => templates.text(value, 'header', `headers.${written}`))
      const constant = template && constantText(template)
      if (constant === undefined && name === 'content-type') mistakes.add(path, CONTENT_TYPE_IS_FIXED)
      else if (constant === undefined) rendered.push([name, template])
      else setFixed(name, written, constant)
    } else {
      secretNames.add(name)
      setFixed(name, written, reveal(value))
    }
  }
  return { fixed, rendered, secretNames }

  function setFixed(name: string, written: string, value: string): void {
    const problem = headerValueProblem(value)
    if (problem !== undefined) mistakes.add(['headers', written], `The value of the header "${written}" ${problem}.`)
    fixed[name] = value
  }
}

const CONTENT_TYPE_IS_FIXED =
  'The content type is a template, and it decides how values are escaped in the body. Write it out, and one action for each type.'

/** Adds name, value, name, value … to a list. */
export function renderHeaders(what: string, { rendered }: PreparedHeaders, scope: Scope, into: string[]): void {
  for (const [name, template] of rendered) {
    const value = template.render(scope)
    const problem = headerValueProblem(value)
    if (problem !== undefined) throw unusable(what, `the value of the header "${name}" ${problem}`)
    into.push(name, value)
  }
}

export interface PreparedBody {
  readonly contentType: string | null
  /** Null where the method has none. */
  render(event: AnyEvent, scope: Scope): string | null
}

export interface BodyOptions {
  readonly method: string
  readonly body: unknown
  /** As the headers have it. */
  readonly contentType: string | undefined
  readonly templates: TemplateCompiler
  readonly source: string
}

/**
 * Without `body` it is the event as CloudEvents JSON, digit for digit. A tree is JSON with templates in it. Text under a
 * content type that is not JSON is sent as text.
 */
export function prepareBody(
  { method, body, contentType, templates, source }: BodyOptions,
  mistakes: Mistakes,
): PreparedBody {
  if (body === undefined) {
    if (method === 'GET' || method === 'DELETE') return { contentType: null, render: () => null }
    return { contentType: CLOUD_EVENTS, render: (event) => writeJson(toCloudEvent(event, { source })) }
  }
  if (method === 'GET') mistakes.add(['body'], 'A GET has no body. Choose another `method`, or leave `body` out.')
  const mediaType = contentType?.toLowerCase().split(';', 1)[0]?.trim()
  const isJson = mediaType === undefined || mediaType.includes('json')
  if (isJson) {
    const tree = mistakes.at(['body'], () => templates.tree(body, 'body'))
    return { contentType: 'application/json', render: (_, scope) => writeJson(tree.render(scope)) }
  }
  if (typeof body !== 'string') {
    mistakes.add(
      ['body'],
      `The body is a table, and the content type is not JSON. Write it as text, or drop the header.`,
    )
    return { contentType: null, render: () => null }
  }
  const text = mistakes.at(['body'], () => templates.text(body, escapingFor(mediaType), 'body'))
  return { contentType: null, render: (_, scope) => text.render(scope) }
}

const CLOUD_EVENTS = 'application/cloudevents+json'

function escapingFor(mediaType: string): TextTarget {
  if (mediaType.includes('urlencoded')) return 'url'
  return /html|xml/.test(mediaType) ? 'html' : 'plain'
}

/** Payloads were bounded when they were emitted; the limit here is for what templates make of them. */
function writeJson(value: unknown): string {
  return stringifyJson(value, { maxBytes: MOST_BYTES, maxDepth: 100, name: 'body' })
}

const MOST_BYTES = 8 * 1_048_576
