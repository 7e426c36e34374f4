/** The configuration as a zod schema: what the file is checked against, and what `config schema` prints. */
import { z } from 'zod'
import { toMs } from '../runtime/index.ts'
import { findSetting, type SettingName } from './config-settings.ts'

const URL_OR_REFERENCE = String.raw`postgres(?:ql)?:\/\/\S+|\$\{env:[A-Za-z_][A-Za-z0-9_]*\}`

export const configSchema = z
  .strictObject({
    database: described('database', z.string().regex(new RegExp(`^(?:${URL_OR_REFERENCE}|embedded)$`))),
    direct_database: described('direct_database', z.string().regex(new RegExp(`^(?:${URL_OR_REFERENCE})$`))),
    schema: described(
      'schema',
      z
        .string()
        .regex(/^(?!pg_)[^$\0]+$/)
        .refine((name) => Buffer.byteLength(name) <= 63),
    ),
    log: z
      .strictObject({
        retention: described(
          'log.retention',
          z
            .string()
            .regex(/^(?:unlimited|\d+(?:\.\d+)?(?:ms|s|m|h|d)|P[\dDTHMS.]+)$/)
            .refine(isRetention),
        ),
        wake: described('log.wake', z.enum(['doorbell', 'poll'])),
        max_payload: described(
          'log.max_payload',
          z.union([z.string().regex(/^\d+(?:\.\d+)?\s*(?:B|kB|KB|MB|GB)?$/), z.int().min(1)]),
        ),
        max_nesting: described('log.max_nesting', z.int().min(1).max(1_000)),
        max_depth: described('log.max_depth', z.int().min(1).max(2_147_483_647)),
      })
      .describe('The log of events.')
      .optional(),
  })
  .meta({ title: 'aftercommit.toml' })

export type ConfigInput = z.infer<typeof configSchema>

export function toJsonSchema(): object {
  return z.toJSONSchema(configSchema, { target: 'draft-4', io: 'input' })
}

/** The keys that a table of the file may have; undefined for what is no table. */
export function keysOf(path: readonly PropertyKey[]): string[] | undefined {
  if (path.length === 0) return Object.keys(configSchema.shape)
  return path.length === 1 && path[0] === 'log' ? Object.keys(configSchema.shape.log.unwrap().shape) : undefined
}

function described<Schema extends z.ZodType>(name: SettingName, schema: Schema) {
  return schema.describe(findSetting(name)!.description).optional()
}

function isRetention(text: string): boolean {
  if (text === 'unlimited') return true
  try {
    return toMs(text, 'log.retention') > 0
  } catch {
    return false
  }
}
