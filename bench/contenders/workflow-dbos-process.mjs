/** Two-step workflows of DBOS. A call of one answers when its end is committed. */

import { randomUUID } from 'node:crypto'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { payload } from '../measure.mjs'
import { readConfig, serve } from './child.mjs'
import { playInFlight } from './in-flight.mjs'

// DBOS sends queries to a connection that is still at one, about which pg warns.
process.noDeprecation = true

const { database, poolSize } = readConfig()
DBOS.setConfig({
  name: 'bench',
  // It wants a host in the address, also where the socket of the query string is meant.
  systemDatabaseUrl: database.replace('@/', '@localhost/'),
  systemDatabasePoolSize: poolSize,
  logLevel: 'error',
  runAdminServer: false,
})
const flow = DBOS.registerWorkflow(
  async (order) => {
    await DBOS.runStep(async () => ({ id: order.id }), { name: 'charge' })
    await DBOS.runStep(async () => ({ id: order.id }), { name: 'notify' })
  },
  { name: 'flow' },
)
await DBOS.launch()

serve({
  play: (wanted) => playInFlight(wanted, () => flow({ id: randomUUID(), ...payload })),
  close: () => DBOS.shutdown(),
})
