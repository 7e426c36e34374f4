/** A process of a user: the rules of a file, with an action of its own that does nothing, started. */
import { createAftercommit } from 'aftercommit'
import { readConfig, serve } from './child.mjs'

const { file, ...options } = readConfig()
const ac = createAftercommit(options)
ac.observers.action('nothing', () => {})
await ac.observers.loadFile(file)
await ac.start()
serve({ close: () => ac.stop() })
