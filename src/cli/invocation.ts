/**
 * One run of a command, from its options to its exit code: settings are read and the database is opened when the command
 * asks for them, an interruption ends it in order, and whatever goes wrong is said once.
 */
import type { Command } from 'commander'
import type { Aftercommit, AftercommitOptions } from '../index.ts'
import { type Configuration, loadConfiguration } from './config.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { reportFailure } from './failure.ts'
import { createOutput, type Output } from './output.ts'
import type { GlobalOptions } from './program.ts'

export interface Invocation<Options> {
  readonly options: Options & GlobalOptions
  readonly output: Output
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal
  configuration(): Promise<Configuration>
  /** An instance on the configured database; stopped when the command is done. */
  open(more?: AftercommitOptions): Promise<Aftercommit>
}

export interface RunOptions {
  /** The command listens to signals itself: it runs until it is told to stop, and stopping is no interruption. */
  readonly ownSignals?: boolean
}

export async function runCommand<Options>(
  command: Command,
  work: (invocation: Invocation<Options>) => Promise<ExitCode>,
  { ownSignals = false }: RunOptions = {},
): Promise<void> {
  const options = command.optsWithGlobals<Options & GlobalOptions>()
  const output = createOutput(options, process)
  const interruption = watchInterruption(ownSignals ? [] : ['SIGINT', 'SIGTERM'])
  let instance: Aftercommit | undefined

  async function open(more: AftercommitOptions = {}): Promise<Aftercommit> {
    const configuration = await loadConfiguration(options, process.env)
    const isProduction = process.env.NODE_ENV === 'production'
    if (configuration.isEmbedded && !isProduction)
      output.talk('No database is configured: using the embedded Postgres.')
    const [{ createAftercommit }, { consoleLogger }] = await Promise.all([
      import('../index.ts'),
      import('../runtime/index.ts'),
    ])
    const level = options.verbose ? 'debug' : options.quiet ? 'error' : 'warn'
    instance = createAftercommit({ logger: consoleLogger({ level }), poolSize: 4, ...configuration.options, ...more })
    return instance
  }

  const configuration = () => loadConfiguration(options, process.env)
  const outcome = work({ options, output, signal: interruption.signal, configuration, open })
  try {
    process.exitCode = await Promise.race([outcome, interruption.happened])
  } catch (error) {
    process.exitCode = await reportFailure(error, output)
  }
  await instance?.stop().catch((error: unknown) => reportFailure(error, output))
  // The work may still wait for something that nobody needs now; the server rolls back what it was doing.
  if (interruption.signal.aborted) process.exit(EXIT.interrupted)
  interruption.end()
}

/** The first signal ends the command in order, the second at once. */
function watchInterruption(signals: readonly NodeJS.Signals[]) {
  const controller = new AbortController()
  let tell: (code: ExitCode) => void
  const happened = new Promise<ExitCode>((resolve) => {
    tell = resolve
  })
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort()
    tell(EXIT.interrupted)
  }
  for (const signal of signals) process.on(signal, interrupt)
  return {
    signal: controller.signal,
    happened,
    end: () => {
      for (const signal of signals) process.off(signal, interrupt)
    },
  }
}
