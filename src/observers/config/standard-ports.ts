/** Checking with the real conditions, templates and actions, for all who have no reason to put others in their place. */
import {
  compileCondition,
  compileExpression,
  type Expression,
  type KnownFields,
  knownFieldsOf,
  mergeFields,
} from '../../conditions/index.ts'
import type { Settings } from '../../configuration/index.ts'
import type { EventDefinition } from '../../events/index.ts'
import type { Pool } from '../../postgres/index.ts'
import { silentLogger, systemClock } from '../../runtime/index.ts'
import type { ActionType, CustomHandler } from '../action.ts'
import { createActionContext, createActionTypes, createTemplateCompiler, prepareAction } from '../actions/index.ts'
import type { CheckPorts, ExpressionOptions, PrepareAction } from './ports.ts'
import { shareTemplates } from './share-templates.ts'

export const conditionPorts: Required<Pick<CheckPorts, 'compileCondition' | 'compileExpression'>> = {
  compileCondition: (source, { strict, ...options }) =>
    compileCondition(source, { strict, ...toCompileOptions(options) }),
  compileExpression: (source, options) => compileExpression(source, toCompileOptions(options)),
}

/** Where the schemas of all events that an observer sees are known, a field that none of them has is a mistake. */
function toCompileOptions({ env, events }: ExpressionOptions) {
  const fields = events && mergeFields(events.map(fieldsOf))
  return { env, ...(fields && { fields }) }
}

/** A schema takes its time to tell, and a thousand observers ask for the same few. */
const known = new WeakMap<EventDefinition, { readonly fields: KnownFields | undefined }>()

function fieldsOf(event: EventDefinition): KnownFields | undefined {
  const found = known.get(event) ?? { fields: knownFieldsOf(event.schema) }
  known.set(event, found)
  return found.fields
}

/** Compiles what stands in the templates of one configuration. */
export type CompileShared = (
  source: string,
  locals: readonly string[] | undefined,
  options: ExpressionOptions,
) => Expression

/**
 * A thousand observers say the same few things over and over, so what was compiled once is used again. Nothing of an
 * event stays in an expression; what it may be about is part of what it is found by.
 */
export function shareExpressions(): CompileShared {
  const unknown = new Map<string, Expression>()
  const byFields = new WeakMap<KnownFields, Map<string, Expression>>()

  function compiledFor(fields: KnownFields | undefined): Map<string, Expression> {
    if (fields === undefined) return unknown
    const found = byFields.get(fields) ?? new Map<string, Expression>()
    byFields.set(fields, found)
    return found
  }

  return (source, locals = [], options) => {
    const { env, fields } = toCompileOptions(options)
    const compiled = compiledFor(fields)
    const key = [...env, '', ...locals, source].join('\0')
    const expression = compiled.get(key) ?? compileExpression(source, { locals, env, fields })
    compiled.set(key, expression)
    return expression
  }
}

/**
 * Enough to find every mistake that can be found without the application: it knows no events and no handlers. With a database,
 * prepared actions can be asked what they lack there.
 */
export function checkOnlyPorts(
  env: CheckPorts['env'],
  own: readonly ActionType[] = [],
  database: Pick<Pool, 'transaction'> = NO_DATABASE,
): CheckPorts {
  const prepare = (settings: Settings) => prepareForChecking(settings, database)
  return { actionTypes: createActionTypes(own), env, ...conditionPorts, prepare }
}

const NO_DATABASE: Pick<Pool, 'transaction'> = {
  transaction: () => Promise.reject(new Error('Nothing runs while a file is checked.')),
}

function prepareForChecking(
  { providers, emailTemplates, redis, network: { allow }, templates: { env } }: Settings,
  database: Pick<Pool, 'transaction'>,
): PrepareAction {
  const handlers = new Map<string, CustomHandler>()
  const compile = shareExpressions()
  const known = { env, events: undefined }
  const context = createActionContext({
    templates: shareTemplates(
      createTemplateCompiler({ expressions: (source, { locals }) => compile(source, locals, known) }),
    ),
    providers,
    emailTemplates,
    redis,
    allow,
    handlers,
    database,
    logger: silentLogger,
    clock: systemClock,
    schema: 'aftercommit',
  })
  return (type, config) => {
    // Which handlers the application registers is not known here, so every name will do.
    const { handler } = config as { handler?: unknown }
    if (type.type === 'custom' && typeof handler === 'string') handlers.set(handler, () => {})
    return prepareAction(type, config, context)
  }
}
