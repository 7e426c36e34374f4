/** Who takes part in a journey of workflows: each with a process and a database of its own. */
import { startChild } from './child.mjs'
import { createBenchDatabase } from './database.mjs'
import { BARE_SQL, DBOS, OURS, OURS_JIT_OFF } from './names.mjs'

/** As many connections for each. */
const POOL_SIZE = 20

/** `reach` makes of a database's address the one that the processes use. */
export async function openWorkflows({ server, own }, { reach = (url) => url } = {}) {
  const open = async (file, name, options) => {
    const database = await own(createBenchDatabase(server.url, name, options))
    return own(startChild(file, { database: await reach(database.url), poolSize: POOL_SIZE }))
  }
  return {
    [OURS]: await open('./workflow-aftercommit-process.mjs', 'flows'),
    ...(server.about.jit === 'on' && {
      [OURS_JIT_OFF]: await open('./workflow-aftercommit-process.mjs', 'flows_jit_off', { jit: 'off' }),
    }),
    [DBOS]: await open('./workflow-dbos-process.mjs', 'flows_dbos'),
    [BARE_SQL]: await open('./workflow-bare-process.mjs', 'flows_bare'),
  }
}
