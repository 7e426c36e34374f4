// A program with a hook of scope `cluster` that says what it handled, until it is killed. Usage: node say-handled.mjs <url>
import { createAftercommit } from 'aftercommit'

const ac = createAftercommit({ database: process.argv[2] })
ac.hooks.add({
  name: 'clerk',
  scope: 'cluster',
  async handle({ id }) {
    console.log(`handled ${id}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  },
})
await ac.start()
console.log('started')
