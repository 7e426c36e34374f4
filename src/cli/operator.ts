/** Who does it and why, for verbs whose act is kept in the audit. */
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'

export interface OperatorOptions {
  readonly who?: string
  readonly reason?: string
}

export function addWho(command: Command): Command {
  return command.option('--who <name>', 'who does it, for the audit; the user of this shell unless told')
}

export function addOperatorOptions(command: Command): Command {
  return addWho(command).option('--reason <text>', 'why, for the audit')
}

export function toAction({ who, reason }: OperatorOptions): { who: string; reason: string | undefined } {
  return { who: who ?? `${userName()}@${hostname()}`, reason }
}

/** A container may run as a number that no name belongs to. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
