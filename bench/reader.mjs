/** Follows a log in a process of its own, until told to stop. */
import { createAftercommit } from 'aftercommit'

const [url, schema] = process.argv.slice(2)
const ac = createAftercommit({ database: url, schema })
const stopping = new AbortController()
process.on('message', () => stopping.abort())
await ac.start()
process.send('ready')
for await (const _event of ac.log.tail({ signal: stopping.signal })) {
}
await ac.stop()
process.disconnect()
