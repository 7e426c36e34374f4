/** One backlog shared by one and two processes behind PgBouncer in transaction mode, set up as each library's pages advise. */
import { openPgbouncer } from '../contenders/pgbouncer.mjs'
import { playSharedBacklog } from '../contenders/shared-backlog.mjs'

export async function run(context) {
  const pooler = await context.own(openPgbouncer(context.server.url))
  return playSharedBacklog(context, {
    title: 'shared by processes behind PgBouncer',
    counts: [1, 2],
    options: {
      ours: { reach: (url) => ({ database: pooler.through(url), directDatabase: url }) },
      // It has one address only, so it hears no notification and must look often.
      peer: { reach: (url) => ({ url: pooler.through(url), pollInterval: 100 }) },
    },
  })
}
