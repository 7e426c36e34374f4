/**
 * `[actions] packages`: modules that bring action types, so that a file can use what is not built in. A module is code:
 * it is loaded by whoever reads the file, and only from where a program in the file's folder could import it. What is
 * wrong with one is a mistake in the file like any other.
 */
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Found, ReadConfiguration } from '../../configuration/index.ts'
import { summarizeError, systemClock, withTimeout } from '../../runtime/index.ts'
import type { ActionType } from '../action.ts'
import { type ActionTypes, shapeProblem, takenProblem } from '../actions/index.ts'
import { isTable } from './observer-schema.ts'

export interface WithPackages {
  /** Those that were known, and those of packages. */
  readonly actionTypes: ActionTypes
  readonly found: readonly Found[]
}

export async function loadActionPackages(
  { data, files }: Pick<ReadConfiguration, 'data' | 'files'>,
  known: ActionTypes,
): Promise<WithPackages> {
  const actionTypes = new Map(known)
  const found: Found[] = []
  const folder = dirname(resolve(files[0] ?? '.'))
  for (const [at, specifier] of packagesIn(data).entries()) {
    const { types, problems } = await loadPackage(specifier, folder)
    const taken = types.flatMap((type) => {
      const problem = takenProblem(actionTypes, type)
      if (problem === undefined) actionTypes.set(type.type, type)
      return problem === undefined ? [] : [`brings the action type "${type.type}", which ${problem}.`]
    })
    const path = ['actions', 'packages', at]
    found.push(...[...problems, ...taken].map((message): Found => ({ path, at: 'value', message })))
  }
  return { actionTypes, found }
}

/** What is no list of texts is reported by the schema. */
function packagesIn({ actions }: ReadConfiguration['data']): readonly string[] {
  const packages = isTable(actions) ? actions.packages : undefined
  return Array.isArray(packages) && packages.every((one) => typeof one === 'string') ? packages : []
}

interface Package {
  readonly types: readonly ActionType[]
  readonly problems: readonly string[]
}

async function loadPackage(specifier: string, folder: string): Promise<Package> {
  const place = findModule(specifier, folder)
  if ('problem' in place) return refuse(place.problem)
  try {
    const loading: Promise<{ default?: unknown }> = import(pathToFileURL(place.file).href)
    // One that waits for ever would end the process without a word.
    return readPackage((await withTimeout(loading, LOAD_MS, systemClock, 'It was not ready')).default)
  } catch (error) {
    return refuse(`could not be loaded: ${summarizeError(error).message.split('\n', 1)[0]}`)
  }
}

const LOAD_MS = 10_000

function readPackage(exported: unknown): Package {
  if (exported === undefined) return refuse('has no default export. Write: export default defineActionType({ … })')
  const all = [exported].flat() as ActionType[]
  if (all.length === 0) return refuse('brings no action type: its default export is an empty list.')
  const problems = all.flatMap((one, at) => {
    const problem = shapeProblem(one)
    if (problem === undefined) return []
    return [`brings an action type${all.length === 1 ? '' : ` (number ${at + 1})`} that ${problem}.`]
  })
  return { types: problems.length > 0 ? [] : all, problems }
}

/** Names of packages and relative paths. Anything with a scheme could bring code from anywhere, so it is refused. */
const SPECIFIER = /^(?:\.{1,2}\/[^\0]+|(?:@[\w.-]+\/)?[\w-][\w.-]*(?:\/[^\0:]+)?)$/

function findModule(specifier: string, folder: string): { file: string } | { problem: string } {
  if (!SPECIFIER.test(specifier)) return { problem: 'must be the name of a package, or a path that begins with ./' }
  try {
    const file = createRequire(join(folder, 'aftercommit.toml')).resolve(specifier)
    return isAbsolute(file) ? { file } : { problem: 'is a part of Node.js, and no package.' }
  } catch (error) {
    return { problem: whyNot(specifier, error) }
  }
}

function whyNot(specifier: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_PACKAGE_PATH_NOT_EXPORTED')
    return 'does not export this. Its package.json must have an entry under exports for "default", not only for "import".'
  if (code !== 'MODULE_NOT_FOUND') return `could not be found (${code ?? 'unknown'}).`
  return specifier.startsWith('.')
    ? 'is not there. The path is relative to the configuration file.'
    : `is not installed where the configuration file is. Install it there: npm install ${specifier}`
}

function refuse(problem: string): Package {
  return { types: [], problems: [problem] }
}
