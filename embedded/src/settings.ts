/** The settings a server starts with, as command line arguments: those of the caller over ours, the address over both. */
import { EmbeddedError } from './errors.ts'

/** Modest, because the server shares a developer's machine; safe, because what people build on it should survive a crash. */
const DEFAULTS = {
  max_connections: '100',
  max_prepared_transactions: '20',
  shared_buffers: '64MB',
  min_wal_size: '32MB',
  max_wal_size: '256MB',
  fsync: 'on',
  logging_collector: 'off',
  cluster_name: 'aftercommit',
}

/** Settings that say where the server is. The launcher has to know that, so they are not for callers to set. */
const OURS = ['listen_addresses', 'port', 'unix_socket_directories', 'hba_file', 'data_directory', 'external_pid_file']

export type Address =
  | { readonly listen: 'socket'; readonly host: string; readonly port: number }
  | { readonly listen: 'tcp'; readonly host: string; readonly port: number; readonly password: string }

/** A Unix socket is a file named after a port, so a port there costs nothing and never clashes. */
export const SOCKET_PORT = 5432

export function checkSettings(settings: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(settings)) {
    if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i.test(name)) {
      throw new EmbeddedError(
        'BAD_OPTION',
        `"${name}" cannot be the name of a Postgres setting; no server was started.`,
      )
    }
    if (OURS.includes(name.toLowerCase())) {
      throw new EmbeddedError(
        'BAD_OPTION',
        `The setting "${name}" belongs to the embedded Postgres itself, so no server was started. ` +
          'Remove it from "settings"; use "listen" and "dataDir" to say where the server should be.',
      )
    }
  }
}

export function toArguments(settings: Readonly<Record<string, string>>, address: Address, hba: string): string[] {
  const where = {
    hba_file: hba,
    port: String(address.port),
    listen_addresses: address.listen === 'tcp' ? address.host : '',
    unix_socket_directories: address.listen === 'tcp' ? '' : quoteFolder(address.host),
    unix_socket_permissions: '0700',
  }
  return Object.entries({ ...DEFAULTS, ...settings, ...where }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Who may connect. The socket's folder is closed to other users, which is why whoever gets there is trusted. */
export function toHba(listen: Address['listen']): string {
  const rule = (database: string) =>
    listen === 'socket' ? `local ${database} all trust` : `host ${database} all 127.0.0.1/32 scram-sha-256`
  return `${rule('all')}\n${rule('replication')}\n`
}

/**
 * The connection string. A socket's folder goes into the `host` parameter and the host itself stays empty, so a driver
 * that does not know the parameter fails instead of connecting to whatever listens on localhost.
 */
export function toUrl(address: Address): string {
  return address.listen === 'tcp'
    ? `postgres://postgres:${address.password}@${address.host}:${address.port}/postgres`
    : `postgres://postgres@/postgres?host=${encodeURIComponent(address.host)}&port=${address.port}`
}

/** The setting is a list with commas; a quoted entry may contain anything. */
function quoteFolder(folder: string): string {
  return `"${folder.replaceAll('"', '""')}"`
}
