/**
 * Where secrets live. These are the places where `${env:NAME}` is resolved, and the places whose values are never shown:
 * not in a mistake, not in a frame, not in a difference.
 */
import { isSecretName } from '../runtime/index.ts'
import type { Path } from './mistake.ts'

/** The connection addresses, `[providers.*]`, `[redis]`, and `secret` and `headers` of an action. */
export function mayReferToEnvironment(path: Path): boolean {
  const [table, , list, , key] = path
  if (table === 'database' || table === 'direct_database') return path.length === 1
  if (table === 'providers' || table === 'redis') return path.length > 1
  return table === 'observers' && list === 'actions' && (key === 'secret' || key === 'headers')
}

/** Wider than the above: somebody may put a token under a key that does not exist. */
export function isSensitive(path: Path): boolean {
  return mayReferToEnvironment(path) || path.some((part) => typeof part === 'string' && isSecretName(part))
}
