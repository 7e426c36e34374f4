/** The rules of the configuration file, for commands that look at them or run them. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Table } from '../configuration/index.ts'
import { AftercommitError } from '../errors.ts'
import type { Aftercommit } from '../index.ts'
import { UsageError } from './failure.ts'
import type { Output } from './output.ts'

export const IMPORT_FLAGS = '--import <module>'
export const IMPORT_HELP = 'a module whose default export is given `ac`, to register handlers, filters and action types'

/** Lets the module do with `ac` what a program would do before it loads the file. */
export async function importModule(module: string, ac: Aftercommit): Promise<void> {
  const { default: register } = (await import(pathToFileURL(resolve(module)).href)) as { default?: unknown }
  if (typeof register !== 'function') {
    throw new UsageError(`${module} has no function as its default export. Write: export default (ac) => { … }`)
  }
  await register(ac)
}

/** Handlers that the file names, each with the observer that does. Throws ConfigError when it cannot be read. */
export async function handlersNamedIn(file: string): Promise<Map<string, string>> {
  const { readConfiguration } = await import('../configuration/index.ts')
  const { observers } = (await readConfiguration({ file })).data
  const named = new Map<string, string>()
  for (const [observer, given] of Object.entries(isTable(observers) ? observers : {})) {
    const actions = isTable(given) && Array.isArray(given.actions) ? given.actions : []
    for (const { type, handler } of actions.filter(isTable)) {
      if (type === 'custom' && typeof handler === 'string') named.set(handler, observer)
    }
  }
  return named
}

/**
 * For commands that send nothing: a handler that nobody registered is replaced by one that is never called, so that
 * rules can be looked at without the program they belong to.
 */
export async function loadRules(ac: Aftercommit, file: string, module: string | undefined): Promise<void> {
  for (const handler of (await handlersNamedIn(file)).keys()) ac.observers.action(handler, neverCalled)
  if (module !== undefined) await importModule(module, ac)
  ac.cache.loader('*', neverCalled)
  await ac.observers.loadFile(file)
}

/** The same where the rules only add to the answer: a file with mistakes is mentioned and left out. */
export async function loadRulesIfPossible(
  ac: Aftercommit,
  file: string | null,
  module: string | undefined,
  output: Output,
): Promise<void> {
  if (file === null) return
  try {
    await loadRules(ac, file, module)
  } catch (error) {
    if (!(error instanceof AftercommitError) || error.code !== 'BAD_CONFIG') throw error
    output.talk(`${file} has mistakes and is left out. See: aftercommit observers validate\n`)
  }
}

/** For commands that are nothing without rules. */
export function requireFile(file: string | null): string {
  if (file !== null) return file
  throw new AftercommitError(
    'BAD_CONFIG',
    'There is no configuration file, so there are no observers. Write aftercommit.toml, or name a file with --config.',
  )
}

function neverCalled(): never {
  throw new AftercommitError('BAD_STATE', 'A handler was called by a command that sends nothing.')
}

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
