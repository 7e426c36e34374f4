/** Writes the tables of the reference pages from the schema of the file. Run it after the schema has changed. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderSections, replaceSections } from './reference.mjs'
import { root, run } from './steps.mjs'

const built = await run(process.execPath, ['scripts/build.mjs', '--quiet'])
if (built !== 0) process.exit(built)
const { checkOnlyPorts, toJsonSchema } = await import('../dist/observers/index.js')
const sections = renderSections(toJsonSchema(checkOnlyPorts({}).actionTypes))
for (const page of ['docs/reference/configuration.md', 'docs/reference/observer-file.md']) {
  const path = join(root, page)
  writeFileSync(path, replaceSections(readFileSync(path, 'utf8'), sections))
}
