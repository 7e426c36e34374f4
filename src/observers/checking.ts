/**
 * Everything that would be in force, checked together: the file's observers and the program's. What the program added is
 * prepared once for the settings of a file, however many more it adds: a thousand of them are not checked a thousand times.
 */
import { type Settings, toSettings } from '../configuration/index.ts'
import { AftercommitError } from '../errors.ts'
import {
  type CheckedConfiguration,
  type ObserverConfig,
  type ObserverOptions,
  type PrepareAction,
  toObserverConfig,
} from './config/index.ts'
import type { InForce } from './engine.ts'
import type { Preparing } from './preparing.ts'

export interface Checking {
  /** Throws ConfigError with what is wrong with the program's, or BAD_OPTION for a name that both have. */
  check(file: CheckedConfiguration | undefined, added: ReadonlyMap<string, ObserverOptions>): InForce
  /** What was checked last is not put in force: nothing of it is used again. */
  forget(): void
}

/** The program's observers as they were prepared for some settings. */
interface Own {
  readonly settings: Settings
  readonly prepare: PrepareAction
  readonly contexts: InForce['contexts']
  readonly configs: WeakMap<ObserverOptions, ObserverConfig>
}

export function createChecking({ ports, takeContexts }: Preparing): Checking {
  const defaults = toSettings({})
  /** What was opened while a file was loaded belongs to its observers. */
  const opened = new WeakMap<CheckedConfiguration, InForce['contexts']>()
  let own: Own | undefined

  function openOwn(settings: Settings): Own {
    return { settings, prepare: ports.prepare!(settings), contexts: takeContexts(), configs: new WeakMap() }
  }

  function toConfig(name: string, options: ObserverOptions, { settings, prepare, configs }: Own): ObserverConfig {
    const known = configs.get(options)
    if (known) return known
    // Types that the file brings are there for the program's observers too.
    const { actionTypes = ports.actionTypes } = settings as Partial<CheckedConfiguration>
    const config = toObserverConfig(name, options, settings, { ...ports, actionTypes, prepare: () => prepare })
    configs.set(options, config)
    return config
  }

  return {
    check(file, added) {
      if (file && !opened.has(file)) opened.set(file, takeContexts())
      const settings: Settings = file ?? defaults
      const mine = own?.settings === settings ? own : openOwn(settings)
      own = mine
      const programs = [...added].map(([name, options]) => toConfig(name, options, mine))
      const inFile = new Set(file?.observers.map(({ name }) => name))
      const twice = programs.find(({ name }) => inFile.has(name))
      if (twice) throw nameTwice(twice.name)
      return {
        settings,
        observers: [...(file?.observers ?? []), ...programs],
        actionTypes: ports.actionTypes,
        prepare: mine.prepare,
        contexts: [...((file && opened.get(file)) ?? []), ...mine.contexts],
      }
    },
    forget() {
      takeContexts()
      own = undefined
    },
  }
}

function nameTwice(name: string): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `Observer "${name}" is in the file and was added by the program too, so nothing was changed. Rename one.`,
  )
}
