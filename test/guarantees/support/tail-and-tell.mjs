// A program that follows a log and prints the id of every event. Usage: node tail-and-tell.mjs <url>
import { createAftercommit } from 'aftercommit'

const ac = createAftercommit({ database: process.argv[2] })
console.log('following')
for await (const event of ac.log.tail({ from: 'start' })) console.log(`read ${event.id}`)
