import type { Command } from 'commander'
import { maskSecrets } from '../../runtime/index.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

export function define(command: Command): void {
  command.action(() => runCommand<object>(command, show))
}

async function show({ configuration, output }: Invocation<object>): Promise<ExitCode> {
  const { settings, file } = await configuration()
  const shown = settings.map(({ name, value, origin, source }) => ({
    setting: name,
    value: typeof value === 'string' ? maskSecrets(value) : value,
    origin,
    source,
  }))
  if (output.json) output.document({ file, settings: shown })
  else {
    output.table(
      [{ title: 'setting' }, { title: 'value', min: 16 }, { title: 'origin', min: 12 }],
      shown.map(({ setting, value, origin, source }) => [
        setting,
        String(value),
        source === null ? origin : `${origin}: ${source}`,
      ]),
    )
    output.talk(file === null ? '\nThere is no aftercommit.toml here.' : `\nRead ${file}.`)
  }
  return EXIT.ok
}
