import { type Command, Option } from 'commander'
import { serveConsole } from '../../console/index.ts'
import { toPort } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

interface Options {
  readonly host: string
  readonly port: number
  readonly environment?: string
  readonly readOnly?: boolean
  readonly allowHost?: string[]
}

export function define(command: Command): void {
  command
    .option('--host <address>', 'the address to listen at; any but loopback needs a token', '127.0.0.1')
    .addOption(new Option('--port <number>', 'the port; 0 takes a free one').argParser(toPort).default(4400))
    .option('--environment <name>', 'a badge on every page: production, staging')
    .option('--read-only', 'change nothing through this console')
    .option('--allow-host <name...>', 'further names by which it may be called')
    .addHelpText(
      'after',
      `
Serves the console until interrupted. With AFTERCOMMIT_CONSOLE_TOKEN set, people sign in with it; without it, everybody on
this machine may look and operate, and no other machine is let in.`,
    )
    .action(() => runCommand<Options>(command, serve))
}

async function serve({ open, options, output, signal }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { host, port, environment, readOnly, allowHost: hosts } = options
  const served = await serveConsole(ac, {
    host,
    port,
    environment,
    readOnly,
    hosts,
    token: process.env.AFTERCOMMIT_CONSOLE_TOKEN,
  })
  if (output.json) output.line({ url: served.url })
  else output.data(`The console is at ${served.url}. Ctrl-C ends it.`)
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  await served.close()
  return EXIT.interrupted
}
