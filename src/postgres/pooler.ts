/**
 * Is there a pooler between us and the server, and does it take the session away between transactions? LISTEN and
 * session locks through such a pooler would stay behind on a server connection that belongs to somebody else by then,
 * so this is asked before anything of the kind is done, and with nothing but plain transactions.
 */
import type { Session } from './session.ts'
import { selectBackendPid } from './statements.ts'

/** `pooled`: there is a pooler, and nothing was seen that a session-mode pooler would not do. */
export type Path = 'direct' | 'pooled' | 'transaction pooler'

export async function detectPath(session: Session, openAnother: () => Promise<Session>): Promise<Path> {
  const pid = await selectBackendPid(session)
  if (pid === session.announcedPid) return 'direct'
  const other = await openAnother()
  try {
    return await other.transaction(async (tx) => {
      // The order matters: with a single server connection behind the pooler, our own second question would wait for
      // this very transaction. In that case the first comparison has answered already.
      if ((await selectBackendPid(tx)) === pid) return 'transaction pooler'
      return (await selectBackendPid(session)) === pid ? 'pooled' : 'transaction pooler'
    })
  } finally {
    other.destroy()
  }
}
