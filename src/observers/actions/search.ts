/** `type = "search"`: keeps a document of an index in step with what events say. */
import { z } from 'zod'
import type { Scope } from '../../conditions/index.ts'
import { stringifyJson } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import type { DocumentWrite } from '../../search/index.ts'
import type { ActionContext, ActionType, PreparedAction } from '../action.ts'
import { createMistakes } from './mistakes.ts'
import { constantText, rendering, unusable } from './rendering.ts'
import { templateText } from './schema-parts.ts'
import { prepareEngine, type SearchEngine } from './search-engine.ts'

const schema = z.strictObject({
  action: z
    .enum(['upsert', 'delete'])
    .optional()
    .describe('"delete" for events of the kind deleted unless told, "upsert" for all others'),
  index: templateText.describe('which index'),
  id: templateText.optional().describe('of the document; the id of the aggregate unless told'),
  document: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('a tree of JSON with templates; the payload unless told'),
})

type SearchConfig = z.infer<typeof schema>

export const search: ActionType<SearchConfig> = { type: 'search', schema, defaultRetry: 'local', prepare }

/** What a reindex needs of a search action beside running it. */
export interface PreparedSearch extends PreparedAction {
  readonly engine: SearchEngine
  /** Null where the name depends on the event. */
  readonly index: string | null
  /** Throws OB003 where no document can be made of the event. */
  compose(event: AnyEvent, scope: Scope): DocumentWrite
}

export function isSearch(prepared: PreparedAction): prepared is PreparedSearch {
  return 'engine' in prepared && 'compose' in prepared
}

const LIMITS = { maxBytes: 8 * 1_048_576, maxDepth: 100, name: 'document' }

function prepare(config: SearchConfig, context: ActionContext): PreparedSearch {
  const { templates, clock } = context
  const mistakes = createMistakes()
  const engine = mistakes.at([], () => prepareEngine(context))
  const index = mistakes.at(['index'], () => templates.text(config.index, 'plain', 'index'))
  const { id: idSource, document: tree } = config
  const id = idSource === undefined ? undefined : mistakes.at(['id'], () => templates.text(idSource, 'plain', 'id'))
  const document = tree === undefined ? undefined : mistakes.at(['document'], () => templates.tree(tree, 'document'))
  const constant = (index && constantText(index)) ?? null
  const problem = engine && constant !== null ? engine.indexProblem(constant) : undefined
  if (problem !== undefined) mistakes.add(['index'], `The name of the index ${problem}.`)
  mistakes.throwIfAny()

  const what = 'The document for the search index'

  function documentFor({ payload }: AnyEvent, scope: Scope): Record<string, unknown> {
    const value = document === undefined ? payload : document.render(scope)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
    throw unusable(what, 'the payload is no table, so `document` has to say what is to be indexed')
  }

  function idFor({ aggregateId }: AnyEvent, scope: Scope): string {
    const text = id === undefined ? aggregateId : id.render(scope)
    if (text === null) throw unusable(what, 'the event is about no aggregate, so `id` has to say which document it is')
    const wrong = engine.idProblem(text)
    if (wrong !== undefined) throw unusable(what, `its id ${wrong}`)
    return text
  }

  function indexFor(scope: Scope): string {
    if (constant !== null) return constant
    const name = index.render(scope)
    const wrong = engine.indexProblem(name)
    if (wrong !== undefined) throw unusable(what, `the name of the index ${wrong}`)
    return name
  }

  function compose(event: AnyEvent, scope: Scope): DocumentWrite {
    return rendering(what, () => {
      const isDeletion = (config.action ?? (event.kind === 'deleted' ? 'delete' : 'upsert')) === 'delete'
      const content = isDeletion ? null : documentFor(event, scope)
      return {
        index: indexFor(scope),
        tenant: event.tenant,
        id: idFor(event, scope),
        position: event.position,
        document: content,
        json: content && stringifyJson(content, LIMITS),
        language: engine.language,
      }
    })
  }

  return {
    destination: engine.destination,
    singleAttempt: false,
    engine,
    index: constant,
    compose,
    ...(engine.ready && { ready: () => engine.ready!() }),
    async run(request) {
      const began = clock.monotonic()
      const write = compose(request.event, request.scope)
      const { outcome, ...exchanged } = await engine.write(write, request)
      const done = write.document === null ? 'deleted' : 'upserted'
      const message = outcome === 'written' ? done : 'superseded: a newer event was there first'
      return { actionType: 'search', success: true, message, durationMs: clock.monotonic() - began, ...exchanged }
    },
    preview({ event, scope }) {
      const { index: name, id: key, document: content } = compose(event, scope)
      const action = content === null ? 'delete' : 'upsert'
      const shown = { action, index: name, id: key, ...(content && { document: content }) }
      return { actionType: 'search', destination: engine.destination, content: shown }
    },
  }
}
