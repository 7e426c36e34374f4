/** What checking needs from others. Everything but the action types may be left out; what needs it is then not checked. */
import type { Condition, Expression } from '../../conditions/index.ts'
import type { Settings } from '../../configuration/index.ts'
import type { EventDefinition, EventDefinitions } from '../../events/index.ts'
import type { ActionType, PreparedAction } from '../action.ts'

export interface CheckPorts {
  readonly actionTypes: ReadonlyMap<string, ActionType>
  /** Where `${env:NAME}` is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The instance has its database: variables that the file names for one are not looked up. */
  readonly hasDatabase?: boolean | undefined
  /** Which events exist. Without it any well-formed type is accepted. */
  readonly events?: EventDefinitions | undefined
  /** Throws an error with an `offset` into the source. */
  readonly compileCondition?: ((source: string, options: ConditionOptions) => Condition) | undefined
  readonly compileExpression?: ((source: string, options: ExpressionOptions) => Expression) | undefined
  /** Called once per configuration, for what its actions share. */
  readonly prepare?: ((settings: Settings) => PrepareAction) | undefined
}

/** Takes keys that the schema of the type has accepted. Throws errors with a `path` below the action. */
export type PrepareAction = (type: ActionType, config: unknown, options: ExpressionOptions) => PreparedAction

export interface ExpressionOptions {
  /** Variables that may be read as env.NAME. */
  readonly env: readonly string[]
  /** The events it will see; undefined when they are not known. */
  readonly events: readonly EventDefinition[] | undefined
}

export interface ConditionOptions extends ExpressionOptions {
  readonly strict: boolean
}
