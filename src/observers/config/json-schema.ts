/** The file as editors know it: JSON Schema draft 4, which is what TOML editors read. */
import { z } from 'zod'
import { settingsShape } from '../../configuration/index.ts'
import type { ActionType } from '../action.ts'
import { observerSchema } from './observer-schema.ts'

export interface JsonSchema {
  readonly [key: string]: unknown
}

export function toJsonSchema(actionTypes: ReadonlyMap<string, ActionType>): JsonSchema {
  const observers = z.record(z.string(), observerSchema).meta({ description: 'Rules by name.' }).optional()
  const file = z.strictObject({ ...settingsShape, observers }).meta({ title: 'aftercommit.toml' })
  const actions = [...actionTypes.values()].map(actionJsonSchema)
  return z.toJSONSchema(file, {
    ...OPTIONS,
    override({ zodSchema, jsonSchema }) {
      if (zodSchema === observerSchema.shape.actions) jsonSchema.items = { oneOf: actions }
    },
  })
}

const OPTIONS = { target: 'draft-4', io: 'input', unrepresentable: 'any' } as const

/** A secret may be an object in TypeScript; in a file it is text, and "text or anything" would help nobody. */
function withoutAnything({ jsonSchema }: { jsonSchema: { anyOf?: object[] } }): void {
  if (jsonSchema.anyOf === undefined) return
  jsonSchema.anyOf = jsonSchema.anyOf.filter((one) => Object.keys(one).length > 0)
}

/** `type` and `name` are common to all of them. */
function actionJsonSchema({ type, schema, describe }: ActionType): JsonSchema {
  const {
    $schema: _,
    properties,
    required,
    ...rest
  } = z.toJSONSchema(schema, { ...OPTIONS, override: withoutAnything })
  return {
    ...rest,
    title: type,
    ...(describe !== undefined && { description: describe }),
    properties: {
      type: { type: 'string', enum: [type] },
      name: { type: 'string', description: 'What the action is known by; its type unless told.', default: type },
      ...properties,
    },
    required: ['type', ...(required ?? [])],
  }
}
