// A program that emits in a transaction, says so, and never gets to its COMMIT. Usage: node emit-and-hang.mjs <url>
import { createAftercommit } from 'aftercommit'

const ac = createAftercommit({ database: process.argv[2] })
await ac.transaction(async (tx) => {
  const { position } = await tx.emit('game.played', { payload: {} })
  console.log(`emitted ${position}`)
  await new Promise(() => setInterval(() => {}, 60_000))
})
