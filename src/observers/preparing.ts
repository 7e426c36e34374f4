/** Checking and preparing with everything real: the application's handlers and filters, its database, its network. */
import type { Settings } from '../configuration/index.ts'
import type { EventDefinitions } from '../events/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Clock, Logger } from '../runtime/index.ts'
import type { ActionType, CustomHandler, TemplateCompiler } from './action.ts'
import {
  type ClosableActionContext,
  createActionContext,
  createActionTypes,
  createTemplateCompiler,
} from './actions/index.ts'
import { type CheckPorts, conditionPorts, type PrepareAction, shareExpressions } from './config/index.ts'
import type { CustomFilter } from './templates/index.ts'

export interface PreparingOptions {
  readonly database: Pick<Database, 'transaction' | 'schemaName'>
  readonly clock: Clock
  readonly logger: Logger
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
  /** What was opened for checked configurations since the last call: connections, mailers. Whoever takes it closes it. */
  takeContexts(): ClosableActionContext[]
}

export function createPreparing(options: PreparingOptions): Preparing {
  const { database, clock, logger, definitions, env, handlers, filters } = options
  let contexts: ClosableActionContext[] = []

  function prepare({ providers, emailTemplates, network: { allow } }: Settings) {
    const context = createActionContext({
      templates: createTemplateCompiler({ filters }),
      providers,
      emailTemplates,
      allow,
      handlers,
      database,
      logger,
      clock,
      source: `/${database.schemaName.name}`,
    })
    contexts.push(context)
    const compile = shareExpressions()
    const prepareAction: PrepareAction = (type, config, known) => {
      const templates =
        options.templates ??
        createTemplateCompiler({ filters, expressions: (source, { locals }) => compile(source, locals, known) })
      return type.prepare(config, { ...context, templates })
    }
    return prepareAction
  }

  return {
    ports: {
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
