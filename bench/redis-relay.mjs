// The instance that publishes. Usage: fork with <database url> <schema> <redis url>; ends when it is told anything.
import { createAftercommit } from 'aftercommit'
import { redisRelay } from 'aftercommit/redis'

const [database, schema, url] = process.argv.slice(2)
const ac = createAftercommit({ database, schema })
ac.hooks.connect(redisRelay({ url }))
await ac.start()
process.send('started')
process.once('message', async () => {
  await ac.stop()
  process.exit(0)
})
