import { AftercommitError } from '../errors.ts'

/** Loads the optional package that brings a server. `message` is the error when the package is not installed. */
export async function loadEmbedded(message: string): Promise<typeof import('aftercommit-embedded')> {
  try {
    return await import('aftercommit-embedded')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new AftercommitError('EMBEDDED_MISSING', message, { cause })
  }
}
