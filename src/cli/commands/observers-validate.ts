import type { Command } from 'commander'
import type { Aftercommit } from '../../index.ts'
import type { Transaction, TransactionOptions } from '../../postgres/index.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { handlersNamedIn, requireFile } from '../observer-file.ts'
import { plural } from '../plural.ts'

export function define(command: Command): void {
  command
    .argument('[file]', 'the file; the configuration file unless told')
    .addHelpText(
      'after',
      '\nChecks the file with all it includes and reports every mistake at once, with its line; exits with 3 when there is ' +
        'one. Needs no database; with --database it also looks for SQL functions that are missing or not allowed. What only ' +
        'the application knows is not checked: its events, handlers and filters.',
    )
    .action((file: string | undefined) => runCommand<object>(command, (invocation) => validate(file, invocation)))
}

async function validate(given: string | undefined, invocation: Invocation<object>): Promise<ExitCode> {
  const { output } = invocation
  const file = given ?? requireFile((await invocation.configuration()).file)
  const { checkOnlyPorts, findLacking, loadConfigurationFile } = await import('../../observers/index.ts')
  const { ConfigError } = await import('../../configuration/index.ts')
  const ac = invocation.options.database === undefined ? undefined : await invocation.open()
  const checked = await loadConfigurationFile({ file }, checkOnlyPorts(process.env, [], ac && connectionOf(ac)))
  if (!checked.ok) throw new ConfigError(checked.mistakes)
  const lacking = ac === undefined ? [] : await findLacking(checked.observers)
  if (lacking.length > 0) {
    throw new ConfigError(
      lacking.map(({ observer, action, reason }) => ({
        where: file,
        path: `observers.${observer}, action ${action}`,
        message: reason,
      })),
    )
  }
  const handlers = [...(await handlersNamedIn(file)).keys()]
  const actions = checked.observers.reduce((sum, observer) => sum + observer.actions.length, 0)
  if (output.json) {
    const observers = checked.observers.map(({ name }) => name)
    output.document({ file, files: checked.files, observers, actions, handlers, mistakes: [] })
  } else {
    const found = `${plural(checked.observers.length, 'observer')} with ${plural(actions, 'action')}`
    output.data(`${file}: no mistakes; ${found}.`)
    if (handlers.length > 0) output.talk(`The program must register: ${handlers.join(', ')}`)
  }
  return EXIT.ok
}

/** The connection by which prepared actions look into the database. */
function connectionOf(ac: Aftercommit): { transaction: Transact } {
  return { transaction: (fn, options) => ac.transaction((tx) => fn(tx as unknown as Transaction), options) }
}

type Transact = <T>(fn: (tx: Transaction) => Promise<T>, options?: TransactionOptions) => Promise<T>
