/** Many clients of a live feed in one process. They count frames, and nothing else that could be slower than a server. */
import { connect } from 'node:net'

const [port, count] = process.argv.slice(2).map(Number)
const DATA = Buffer.from('\ndata: ')
const counts = new Array(count).fill(0)
let connected = 0
let broken = 0

for (let number = 0; number < count; number++) {
  const socket = connect(port, '127.0.0.1')
  let carried = Buffer.alloc(0)
  let isPlaced = false
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  socket.on('error', () => {})
  socket.on('close', () => broken++)
  socket.on('data', (chunk) => {
    if (!isPlaced && chunk.includes('\nid: ')) {
      isPlaced = true
      if (++connected === count) process.send('connected')
    }
    const bytes = carried.length === 0 ? chunk : Buffer.concat([carried, chunk])
    for (let at = bytes.indexOf(DATA); at >= 0; at = bytes.indexOf(DATA, at + DATA.length)) counts[number]++
    // A mark may be cut in two, but no part of it may be counted again.
    const kept = Math.min(DATA.length - 1, bytes.length)
    const tail = bytes.subarray(bytes.length - kept)
    carried = Buffer.from(tail.includes(DATA) ? [] : tail)
  })
}

process.on('message', (question) => {
  if (question === 'counts') process.send({ least: Math.min(...counts), most: Math.max(...counts), broken })
  else process.exit()
})
