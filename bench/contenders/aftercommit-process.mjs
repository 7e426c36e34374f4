/** A process of a user: the rules of a file, started. */
import { createAftercommit } from 'aftercommit'
import { readConfig, serve } from './child.mjs'

const { file, ...options } = readConfig()
const ac = createAftercommit(options)
await ac.observers.loadFile(file)
await ac.start()
serve({ close: () => ac.stop() })
