/** Builds the tree of commands. A verb that was not asked for is a name and a summary; its file is not loaded. */
import { styleText } from 'node:util'
import { Command } from 'commander'
import { printableLines } from '../printable.ts'
import { VERSION } from '../version.ts'

export interface Verb {
  readonly name: string
  readonly summary: string
  /** What a verb does: the file adds arguments, options, help and the action. */
  readonly load?: () => Promise<{ define(command: Command): void }>
  /** Or the verbs below it. */
  readonly verbs?: readonly Verb[]
}

/** Given to every command, before or after the verb. */
export interface GlobalOptions {
  readonly database?: string
  readonly schema?: string
  readonly config?: string
  readonly json?: boolean
  readonly color: boolean
  readonly quiet?: boolean
  readonly verbose?: boolean
  readonly yes?: boolean
}

export async function createProgram(verbs: readonly Verb[], argv: readonly string[]): Promise<Command> {
  const program = addGlobalOptions(new Command('aftercommit'))
    .description('Events in the transaction of your data, and everything that happens after COMMIT.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(printableLines(text)) })
    .showHelpAfterError('See: aftercommit --help')
    .configureHelp({
      showGlobalOptions: true,
      styleTitle: bold,
      styleCommandText: bold,
      styleSubcommandText: bold,
      subcommandTerm: (command) => command.name(),
    })
  await addVerbs(program, verbs, wordsOf(argv))
  return program
}

function addGlobalOptions(command: Command): Command {
  return command
    .option('--database <url>', 'the database; DATABASE_URL unless given')
    .option('--schema <name>', 'the Postgres schema of the log')
    .option('--config <file>', 'configuration file; ./aftercommit.toml if there is one')
    .option('--json', 'print JSON for programs')
    .option('--no-color', 'print without colour')
    .option('-q, --quiet', 'print data only, no remarks')
    .option('-v, --verbose', 'print what happens, and stacks of errors')
    .option('-y, --yes', 'answer yes to every question')
}

async function addVerbs(parent: Command, verbs: readonly Verb[], [wanted, ...rest]: readonly string[]): Promise<void> {
  for (const verb of verbs) {
    const command = parent.command(verb.name).description(verb.summary).helpCommand(false)
    if (verb.verbs) {
      await addVerbs(command, verb.verbs, verb.name === wanted ? rest : [])
    } else if (verb.load && verb.name === wanted) {
      const { define } = await verb.load()
      define(command)
    }
  }
}

/** The words of a command line that are neither global options nor their values: the verb comes first among them. */
function wordsOf(argv: readonly string[]): string[] {
  return addGlobalOptions(new Command()).parseOptions([...argv]).operands
}

/** commander takes it out again where colour is not wanted. */
function bold(text: string): string {
  return styleText('bold', text)
}
