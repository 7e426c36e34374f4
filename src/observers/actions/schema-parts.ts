/** Pieces of the schemas of actions. */
import { z } from 'zod'
import type { SecretText } from '../../configuration/index.ts'
import { AftercommitError } from '../../errors.ts'
import { toMs } from '../../runtime/index.ts'

/** A template, or text that happens to be constant. */
export const templateText = z.string().min(1)

export const durationText = z.string().superRefine((value, check) => {
  try {
    if (toMs(value, 'timeout') < 1) check.addIssue({ code: 'custom', message: 'must be longer than nothing' })
  } catch (error) {
    if (!(error instanceof AftercommitError)) throw error
    check.addIssue({ code: 'custom', message: error.message })
  }
})

/** Text, or what the configuration made of `${env:NAME}`. */
export const secretText: z.ZodType<SecretText> = z.union([
  z.string().min(1),
  z.custom<{ reveal(): string }>(isSecret, { message: 'must be text or a reference to the environment' }),
])

function isSecret(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'reveal' in value && typeof value.reveal === 'function'
}
