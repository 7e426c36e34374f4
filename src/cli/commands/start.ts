/**
 * aftercommit as a process of its own, for rules that need no program.
 *
 *   starting ──ready, one line──▶ running ──SIGTERM, SIGINT──▶ draining ──all done──▶ exit 0
 *      │                            │  ▲                          ├──the limit passed──▶ claims are given back, exit 1
 *      └──a mistake──▶ exit 3       └──┘ SIGHUP: the file is       └──a second signal──▶ exit 130
 *                                        read again, or stays
 */
import { type Command, Option } from 'commander'
import { AftercommitError } from '../../errors.ts'
import type { Aftercommit, AftercommitOptions, Logger } from '../../index.ts'
import type { CheckedConfiguration, ConfigurationDiff } from '../../observers/index.ts'
import { systemClock, withTimeout } from '../../runtime/index.ts'
import { collect } from '../arguments.ts'
import { fileToRead, withoutOverridden } from '../config.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { reportFailure } from '../failure.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { handlersNamedIn, IMPORT_FLAGS, IMPORT_HELP, importModule, requireFile } from '../observer-file.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import type { GlobalOptions } from '../program.ts'
import { watchServiceSignals } from '../service-signals.ts'
import { addServices } from '../start-services.ts'

interface Options {
  readonly only?: string[]
  readonly watch?: boolean
  readonly import?: string
}

export function define(command: Command): void {
  command
    .addOption(
      new Option('--only <pattern...>', 'run only subscriptions whose id matches, like observers').argParser(collect),
    )
    .option('--watch', 'read the file again whenever it changes')
    .addOption(new Option(IMPORT_FLAGS, IMPORT_HELP))
    .addHelpText(
      'after',
      `
Runs the observers of the configuration file, and the deliveries they leave. Prints one line when it is ready; logs go to
standard error, as JSON unless that is a terminal.

Signals:
  SIGHUP            reads the file again; when it has mistakes, what is in force stays
  SIGTERM, SIGINT   finishes what is under way within runtime.shutdown_timeout, then exits with 0; with 1 when that was
                    not enough, and what was not finished is given back for others
  a second one      exits with 130 at once`,
    )
    .action(() => runCommand<Options>(command, start, { ownSignals: true }))
}

/** What follows the drain limit: the last checkpoint, goodbyes, closing connections. */
const FAREWELL_MS = 10_000

async function start({ configuration, open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const signals = watchServiceSignals()
  const file = requireFile(fileToRead(options) ?? null)
  // First, for it finds every mistake of the file; then settings of flags and the environment.
  const checked = await check(file, options)
  await configuration()
  const logger = await createLogger(options)
  const ac = await open({ logger, poolSize: undefined, ...toOptions(checked) })
  const running = run(ac, file, checked, options).then(() => {
    signals.onReload(() => void reload(ac, logger, output))
    sayReady(ac, file, output)
  })
  await Promise.race([running, signals.asked])
  // Told to stop while it was starting, it fails to start, and that is as it should be.
  running.catch(() => {})
  const signal = await signals.asked
  logger.info({ signal }, 'stopping')
  const code = await drain(ac, checked.runtime.shutdownTimeoutMs, logger)
  // What outlasted the drain may hold sockets open for as long as it likes.
  process.exit(code)
}

/** Everything that can be known without the database, before it is touched. */
async function check(file: string, options: Options & GlobalOptions): Promise<CheckedConfiguration> {
  const { import: module } = options
  const [{ checkConfiguration, checkOnlyPorts }, { ConfigError, readConfiguration }] = await Promise.all([
    import('../../observers/index.ts'),
    import('../../configuration/index.ts'),
  ])
  const read = await readConfiguration({ file })
  const data = withoutOverridden(read.data, options, process.env)
  const { observers: _rules, ...settings } = data
  // What the module brings is not known yet: with one, rules are checked when they are loaded, before anything runs.
  const checked = await checkConfiguration(
    { ...read, data: module === undefined ? data : settings },
    checkOnlyPorts(process.env),
  )
  if (!checked.ok) throw new ConfigError(checked.mistakes)
  const [named] = module === undefined ? await handlersNamedIn(file) : []
  if (named === undefined) return checked
  const [handler, observer] = named
  throw new AftercommitError(
    'BAD_CONFIG',
    `Observer "${observer}" names the handler "${handler}", which is code of yours, so nothing was started. Give the module ` +
      'that registers it with --import, or start from a program: ' +
      `ac.observers.action("${handler}", …), ac.observers.loadFile("${file}"), ac.start().`,
  )
}

/** What an instance must be told when it is made; the rest of the file is told with its observers. */
function toOptions({ runtime, dlq }: CheckedConfiguration): AftercommitOptions {
  const { autoRedrive } = dlq
  return {
    runtime: { maxConcurrency: runtime.maxConcurrency, shutdownTimeout: `${runtime.shutdownTimeoutMs}ms` },
    dlq: {
      storeStacks: dlq.storeStacks,
      autoRedrive: autoRedrive === null ? undefined : { after: `${autoRedrive.afterMs}ms`, max: autoRedrive.max },
      retention: `${dlq.retentionMs}ms`,
    },
  }
}

async function createLogger({ json, verbose, quiet }: GlobalOptions): Promise<Logger> {
  const level = verbose ? 'debug' : quiet ? 'error' : 'info'
  if (!json && process.stderr.isTTY) {
    const { consoleLogger } = await import('../../runtime/index.ts')
    return consoleLogger({ level })
  }
  const { pino } = await import('pino')
  // Written at once: a process that ends must not take its last lines along.
  const logger: Logger = pino({ level }, pino.destination({ dest: 2, sync: true }))
  return logger
}

async function run(ac: Aftercommit, file: string, checked: CheckedConfiguration, options: Options): Promise<void> {
  const { import: module, watch, only } = options
  if (module !== undefined) await importModule(module, ac)
  await ac.observers.loadFile(file, { watch: watch ?? false })
  await addServices(ac, checked)
  await ac.start({ only })
}

function sayReady(ac: Aftercommit, file: string, output: Output): void {
  const observers = ac.observers.list().filter(({ enabled }) => enabled).length
  if (output.json) output.line({ ready: true, file, observers, pid: process.pid })
  else output.data(`Ready: ${plural(observers, 'observer')} of ${file}, process ${process.pid}. SIGTERM stops it.`)
}

async function reload(ac: Aftercommit, logger: Logger, output: Output): Promise<void> {
  try {
    const late = settingsForRestart(await ac.observers.reload())
    if (late.length > 0) logger.warn({ settings: late }, 'these settings count from the next start on')
  } catch (error) {
    await reportFailure(error, output)
  }
}

/** What an instance is made with cannot change under it. */
function settingsForRestart(diff: ConfigurationDiff | null): string[] {
  return (diff?.settings ?? []).map(({ path }) => path).filter((path) => FIXED.test(path))
}

const FIXED = /^(database|direct_database|schema|log|dlq|redis|audit|runtime\.(max_concurrency|shutdown_timeout))(\.|$)/

async function drain(ac: Aftercommit, limitMs: number, logger: Logger): Promise<ExitCode> {
  try {
    await withTimeout(ac.stop(), limitMs + FAREWELL_MS, systemClock, 'aftercommit had not stopped')
    return EXIT.ok
  } catch (error) {
    logger.error({ err: error }, 'stopped before everything was done; what was not done is given back')
    return EXIT.failure
  }
}
