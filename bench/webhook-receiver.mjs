/** What the bench of webhooks calls: takes everything, answers 200. Ends with its parent. */
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume().on('end', () => response.end('ok'))
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))
process.on('disconnect', () => process.exit())
