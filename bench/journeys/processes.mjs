/** One backlog of webhooks shared by one, two and four processes. */
import { playSharedBacklog } from '../contenders/shared-backlog.mjs'

export function run(context) {
  return playSharedBacklog(context, { title: 'shared by processes', counts: [1, 2, 4] })
}
