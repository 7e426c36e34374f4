/** Checking and preparing with everything real: the application's handlers and filters, its database, its network. */
import type { CacheActions } from '../cache/index.ts'
import type { Settings } from '../configuration/index.ts'
import type { EventDefinitions } from '../events/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Clock, Logger, Telemetry } from '../runtime/index.ts'
import type { DocumentWriter } from '../search/index.ts'
import type { ActionType, CustomHandler, TemplateCompiler } from './action.ts'
import {
  type ClosableActionContext,
  createActionContext,
  createActionTypes,
  createTemplateCompiler,
  prepareAction,
} from './actions/index.ts'
import {
  type CheckPorts,
  conditionPorts,
  type ExpressionOptions,
  type PrepareAction,
  shareExpressions,
  shareTemplates,
} from './config/index.ts'
import type { CustomFilter } from './templates/index.ts'

export interface PreparingOptions {
  readonly database: Pick<Database, 'transaction' | 'schemaName'>
  /** The search indexes of the database; absent where nothing runs. */
  readonly documents?: DocumentWriter | undefined
  /** The caches inside the processes; absent where nothing runs. */
  readonly cache?: CacheActions | undefined
  readonly clock: Clock
  readonly logger: Logger
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  readonly definitions: EventDefinitions | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly handlers: ReadonlyMap<string, CustomHandler>
  readonly filters: Readonly<Record<string, CustomFilter>>
  readonly actionTypes: readonly ActionType[]
  /** In place of the template engine. */
  readonly templates?: TemplateCompiler | undefined
}

export interface Preparing {
  readonly ports: CheckPorts
  /** What was opened since the last call, for connections to come. Whoever uses it closes it. */
  takeContexts(): ClosableActionContext[]
}

export function createPreparing(options: PreparingOptions): Preparing {
  const { database, clock, logger, definitions, env, handlers, filters } = options
  let contexts: ClosableActionContext[] = []

  function prepare({ providers, emailTemplates, redis, network: { allow } }: Settings) {
    const context = createActionContext({
      templates: createTemplateCompiler({ filters }),
      providers,
      emailTemplates,
      allow,
      handlers,
      database,
      ...(options.documents && { documents: options.documents }),
      ...(options.cache && { cache: options.cache }),
      redis,
      logger,
      clock,
      schema: database.schemaName.name,
      tracing: options.tracing,
    })
    contexts.push(context)
    const compile = shareExpressions()
    /** By the names of the events that are known: what a template may be about decides whether it is right. */
    const compilers = new Map<string | undefined, TemplateCompiler>()
    const templatesFor = (known: ExpressionOptions) => {
      const names = known.events?.map(({ name }) => name).join(' ')
      const templates =
        compilers.get(names) ??
        shareTemplates(
          createTemplateCompiler({ filters, expressions: (source, { locals }) => compile(source, locals, known) }),
        )
      compilers.set(names, templates)
      return templates
    }
    const prepareKnown: PrepareAction = (type, config, known) =>
      prepareAction(type, config, { ...context, templates: options.templates ?? templatesFor(known) })
    return prepareKnown
  }

  return {
    ports: {
      hasDatabase: true,
      actionTypes: createActionTypes(options.actionTypes),
      env,
      events: definitions,
      ...conditionPorts,
      prepare,
    },
    takeContexts() {
      const taken = contexts
      contexts = []
      return taken
    },
  }
}
