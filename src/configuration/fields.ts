/** The kinds of values that settings have: each checks itself, describes itself to editors, and says what it expects. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { toMs } from '../runtime/index.ts'
import { expectationOf, expecting } from './expectations.ts'

export interface About {
  readonly description: string
  /** What it is when nobody says. */
  readonly fallback?: string | number | boolean | readonly string[]
  /** The rest of a sentence that begins with the name of the setting. */
  readonly expects?: string
}

/** A setting with its description; whoever must be there is made so with `needed`. */
export function setting<Schema extends z.ZodType>(schema: Schema, about: About) {
  return needed(schema, about).optional()
}

export function needed<Schema extends z.ZodType>(schema: Schema, { description, fallback, expects }: About): Schema {
  const described = schema.meta({ description, ...(fallback !== undefined && { default: fallback }) })
  const words = expects ?? expectationOf(schema)
  return words === undefined ? described : expecting(described, words)
}

export function table<Shape extends z.core.$ZodLooseShape>(description: string, shape: Shape) {
  return z.strictObject(shape).meta({ description })
}

const DURATION = String.raw`\d+(?:\.\d+)?(?:ms|s|m|h|d)|P[\dDTHMS.]+`

export const duration = expecting(
  z
    .string()
    .regex(new RegExp(`^(?:${DURATION})$`))
    .refine(isDuration),
  'must be a duration like "250ms", "30s", "5m" or "PT36H"',
)

export const retention = expecting(
  z
    .string()
    .regex(new RegExp(`^(?:unlimited|${DURATION})$`))
    .refine((text) => text === 'unlimited' || isDuration(text)),
  'must be "unlimited" or a duration like "30d", "12h" or "PT36H"',
)

export const size = expecting(
  z.union([z.string().regex(/^\d+(?:\.\d+)?\s*(?:B|kB|KB|MB|GB)?$/), z.int().min(1)]),
  'must be a size like "20kB" or "1MB", or a number of bytes',
)

export const rate = expecting(
  z.string().regex(/^[1-9]\d{0,8}\/(?:s|m|h|d)$/),
  'must be a rate like "50/s", "100/m" or "5/h"',
)

export const text = expecting(z.string().min(1), 'must be text that is not empty')

/** What events, observers and actions are known by: it ends up in tables, metrics and commands. */
export const name = expecting(
  z.string().regex(/^(?!__proto__$)\w[\w:.-]{0,99}$/),
  'must be a name of 1 to 100 letters, digits and _ : . -, beginning with a letter, a digit or _',
)

export const count = z.int().min(1).max(2_147_483_647)

export const envName = expecting(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
  'must be the name of a variable, like SHOP_URL',
)

/** Text of some form, or a reference to the environment. The form is checked again when the reference is resolved. */
export function orReference(form: string, expects: string) {
  return expecting(
    z.string().regex(new RegExp(`^(?:${form}|${REFERENCE})$`)),
    `${expects}, or a reference like \${env:NAME}`,
  )
}

const REFERENCE = String.raw`\$\{env:[A-Za-z_][A-Za-z0-9_]*\}`

/** Where private addresses are listed: an address, a network or a host name, without scheme and port. */
export const networkTarget = expecting(
  z
    .string()
    .regex(/^[0-9A-Za-z.:/_-]+$/)
    .refine(isNetworkTarget),
  'must be an address, a network or a host name, like "127.0.0.1", "10.20.0.0/16" or "erp.internal"',
)

/**
 * An origin such as https://erp.example.com, a provider, or a word of a workflow. No word has a dot in it: a host without
 * its scheme is a mistake, and would limit nothing.
 */
export const destination = expecting(
  z
    .string()
    .regex(/^(?:https?:\/\/[^/?#\s@]+|[A-Za-z0-9](?:[\w: -]{0,98}\w)?)$/)
    .refine((key) => !key.includes('://') || URL.canParse(key)),
  'must be an origin like "https://erp.example.com", without a path; a provider: slack, smtp, sms, push, search; or what a ' +
    'workflow calls a destination: 1 to 100 letters, digits, spaces and _ : -',
)

export function parseRate(text: string): Rate {
  const [count, unit] = text.split('/')
  return { count: Number(count), perMs: toMs(`1${unit}`, 'rate') }
}

export interface Rate {
  readonly count: number
  readonly perMs: number
}

function isDuration(text: string): boolean {
  try {
    return toMs(text, 'this') > 0
  } catch {
    return false
  }
}

function isNetworkTarget(text: string): boolean {
  const [host = '', prefix, ...more] = text.split('/')
  const family = isIP(host)
  if (more.length > 0) return false
  if (prefix !== undefined)
    return family !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128)
  return family !== 0 || /^(?=.*[A-Za-z])[\w-]{1,63}(?:\.[\w-]{1,63})*$/.test(host)
}
