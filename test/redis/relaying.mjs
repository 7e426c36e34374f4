// An instance with a relay, to be killed. Usage: node relaying.mjs <database url> <redis url>
import { createAftercommit } from 'aftercommit'
import { redisRelay } from 'aftercommit/redis'

const [database, url] = process.argv.slice(2)
const ac = createAftercommit({ database })
ac.hooks.connect(redisRelay({ url, timeout: '1s' }))
await ac.start()
console.log('started')
