/** Where the database is: an option, the environment, or the embedded Postgres that is started at first use. */
import { AftercommitError } from './errors.ts'
import type { AftercommitOptions } from './options.ts'
import { type ConnectionTarget, loadEmbedded } from './postgres/index.ts'

export interface DatabaseAddress {
  /** Resolved when the first connection is made. */
  readonly target: ConnectionTarget | (() => Promise<ConnectionTarget>)
  /** Gives up the embedded server; the last user stops it. */
  release(): Promise<void>
}

export function resolveDatabase(options: AftercommitOptions, env: NodeJS.ProcessEnv): DatabaseAddress {
  const target = options.database ?? (env.DATABASE_URL || undefined)
  if (target !== undefined && target !== 'embedded') return { target, release: async () => {} }
  if (target === undefined && env.NODE_ENV === 'production') {
    throw new AftercommitError(
      'NO_DATABASE',
      'No database is configured and NODE_ENV is production, so nothing was started. Set DATABASE_URL or the `database` ' +
        "option; `database: 'embedded'` asks for the embedded Postgres on purpose.",
    )
  }
  return embeddedAddress()
}

function embeddedAddress(): DatabaseAddress {
  let server: Promise<{ url: string; stop(): Promise<void> }> | undefined
  return {
    async target() {
      server ??= startServer()
      return (await server).url
    },
    async release() {
      await (await server?.catch(() => undefined))?.stop()
      server = undefined
    },
  }
}

async function startServer() {
  const { startEmbedded } = await loadEmbedded(
    'No database is configured and the package aftercommit-embedded is not installed, so nothing was started. ' +
      'Set DATABASE_URL, or run: npm install --save-dev aftercommit-embedded',
  )
  return startEmbedded()
}
