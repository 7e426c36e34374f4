/** Mistakes in the configuration, each with its place, what was expected and the line it is on. */
import { AftercommitError } from '../errors.ts'

export interface Mistake {
  /** `aftercommit.toml:3:8`, or the name of a variable, a flag or an observer. */
  readonly where: string
  /** The setting as it is written: `observers.mail.actions[0].to`. */
  readonly path: string
  readonly message: string
  /** The line, with the place marked. */
  readonly frame?: string
}

export type Path = readonly PropertyKey[]

/** What is wrong with which setting, before its place is known. */
export interface Found {
  readonly path: Path
  readonly at: 'key' | 'value'
  readonly message: string
  /** Where in the text of the value, for a value that is itself a language: a condition, a template. */
  readonly offset?: number | undefined
}

/** All mistakes at once: nobody likes to find them one by one. */
export class ConfigError extends AftercommitError {
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[]) {
    const count = mistakes.length === 1 ? 'one mistake' : `${mistakes.length} mistakes`
    super(
      'BAD_CONFIG',
      `The configuration has ${count}, so nothing was done.\n\n${mistakes.map(describe).join('\n\n')}\n`,
    )
    this.mistakes = mistakes
  }
}

function describe({ where, path, message, frame }: Mistake): string {
  return `${where}  ${path}\n  ${message}${frame === undefined ? '' : `\n\n${frame}`}`
}

/** `observers.mail.actions[0].to`; a key that TOML would quote is quoted here too. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, part, at) => {
    const key = String(part)
    if (at > 0 && /^\d+$/.test(key)) return `${text}[${key}]`
    const name = /^[\w-]{1,100}$/.test(key) ? key : JSON.stringify(key.length > 60 ? `${key.slice(0, 60)}…` : key)
    return text === '' ? name : `${text}.${name}`
  }, '')
}

/** One word for a path, to keep things by it. It grows by `keyBelow`, so that a file is not joined over and over. */
export function pathKey(path: Path): string {
  return path.reduce<string>(keyBelow, '')
}

export function keyBelow(above: string, part: PropertyKey): string {
  const name = String(part)
  return `${above}\0${name.includes('\0') ? JSON.stringify(name) : name}`
}
