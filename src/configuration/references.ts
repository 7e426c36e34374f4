/**
 * `${env:NAME}` keeps secrets out of the file. A reference is resolved only where a secret belongs; anywhere else it
 * would carry a variable to wherever the text goes, so it is refused.
 */
import { type Found, type Path, pathKey } from './mistake.ts'
import { Secret } from './secret.ts'
import { mayReferToEnvironment } from './sensitive.ts'

export interface References {
  /** By the key of their path. */
  readonly secrets: ReadonlyMap<string, Secret>
  readonly found: readonly Found[]
}

type Environment = Readonly<Record<string, string | undefined>>

export function resolveReferences(data: unknown, env: Environment): References {
  const secrets = new Map<string, Secret>()
  const found: Found[] = []
  eachReference(data, [], (text, path) => {
    const result = mayReferToEnvironment(path) ? resolve(text, env) : NOT_HERE
    if (result instanceof Secret) secrets.set(pathKey(path), result)
    else found.push({ path, at: 'value', message: result })
  })
  return { secrets, found }
}

/** A copy of the data with its secrets in place of the references. */
export function withSecrets<T>(data: T, secrets: ReadonlyMap<string, Secret>, path: Path = []): T {
  if (secrets.size === 0) return data
  return replace(data, secrets, [...path]) as T
}

const NOT_HERE =
  `refers to the environment, which only [providers.*], [redis], the database and the secret and headers of an action ` +
  'may do. Write the value itself, or list the variable under [templates] env and use {{ env.NAME }}.'

const MARK = `\${env:`
const REFERENCE = /\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The secret, or what is wrong. */
function resolve(text: string, env: Environment): Secret | string {
  const names = [...text.matchAll(REFERENCE)].map(([, name = '']) => name)
  if (text.replace(REFERENCE, '').includes(MARK)) {
    return `has a reference that is not complete. Write it like \${env:NAME}, with letters, digits and _.`
  }
  const missing = names.filter((name) => !env[name])
  if (missing.length > 0) return missingText(missing)
  if (/\{\{|\{%/.test(text)) return 'mixes a secret with a template. Give each a header of its own.'
  const value = text.replace(REFERENCE, (_, name: string) => env[name] ?? '')
  return new Secret(value, names.map((name) => `env:${name}`).join(', '))
}

function missingText(names: readonly string[]): string {
  const [what, verb, them] = names.length === 1 ? ['variable', 'is', 'it'] : ['variables', 'are', 'them']
  return `refers to the ${what} ${names.join(', ')}, which ${verb} not set. Set ${them}, or leave the setting out.`
}

/** `path` is one list that grows and shrinks with the walk: most files have thousands of texts and few references. */
function eachReference(value: unknown, path: PropertyKey[], visit: (text: string, path: Path) => void): void {
  if (typeof value === 'string' && value.includes(MARK)) visit(value, [...path])
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) {
    path.push(key)
    eachReference((value as Record<string, unknown>)[key], path, visit)
    path.pop()
  }
}

function replace(value: unknown, secrets: ReadonlyMap<string, Secret>, path: PropertyKey[]): unknown {
  if (typeof value === 'string') return value.includes(MARK) ? (secrets.get(pathKey(path)) ?? value) : value
  if (Array.isArray(value)) return value.map((item, at) => replaceBelow(item, at))
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value
  // fromEntries defines properties rather than assigning them, so a key named __proto__ stays a key.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaceBelow(item, key)]))

  function replaceBelow(item: unknown, key: PropertyKey): unknown {
    path.push(key)
    const replaced = replace(item, secrets, path)
    path.pop()
    return replaced
  }
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
