/** Who holds the frontier back, for `status` and `unblock`. */
import type { Holder } from '../index.ts'
import { formatDuration } from '../runtime/index.ts'
import type { Column } from './table.ts'

export const HOLDER_COLUMNS: readonly Column[] = [
  { title: 'transaction', min: 12 },
  { title: 'application', min: 10 },
  { title: 'user', min: 6 },
  { title: 'state', min: 8 },
  { title: 'open for', align: 'right' },
]

export function toHolderRow({ pid, preparedGid, application, user, state, ageSeconds }: Holder): string[] {
  return [
    preparedGid === null ? `pid ${pid}` : `gid ${preparedGid}`,
    application || '–',
    user ?? '–',
    preparedGid === null ? (state ?? 'not visible to this role') : 'prepared',
    ageSeconds === null ? '?' : formatDuration(Math.max(0, ageSeconds) * 1_000),
  ]
}
