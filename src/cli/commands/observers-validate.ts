import type { Command } from 'commander'
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
        'one. Needs no database. What only the application knows is not checked: its events, handlers and filters.',
    )
    .action((file: string | undefined) => runCommand<object>(command, (invocation) => validate(file, invocation)))
}

async function validate(given: string | undefined, invocation: Invocation<object>): Promise<ExitCode> {
  const { output } = invocation
  const file = given ?? requireFile((await invocation.configuration()).file)
  const { checkOnlyPorts, loadConfigurationFile } = await import('../../observers/index.ts')
  const checked = await loadConfigurationFile({ file }, checkOnlyPorts(process.env))
  if (!checked.ok) {
    const { ConfigError } = await import('../../configuration/index.ts')
    throw new ConfigError(checked.mistakes)
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
