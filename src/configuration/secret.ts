import { inspect } from 'node:util'

/**
 * A value that came out of the environment through `${env:NAME}`. Whatever prints, logs or serialises it gets the name
 * of the variable; only `reveal()` gives the value, so every place that uses a secret can be found by that word.
 */
export class Secret {
  /** `env:NAME`, or several of them when the text was put together. */
  readonly #origin: string
  readonly #value: string

  constructor(value: string, origin: string) {
    this.#value = value
    this.#origin = origin
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return `[secret ${this.#origin}]`
  }

  toJSON(): string {
    return this.toString()
  }

  [inspect.custom](): string {
    return this.toString()
  }
}

/** A value that must not be printed. The configuration wraps `${env:NAME}` in one; plain text is taken as well. */
export type SecretText = string | { reveal(): string }

/** The text behind a setting that may be a secret or plain text. */
export function reveal(setting: SecretText): string {
  return typeof setting === 'string' ? setting : setting.reveal()
}
